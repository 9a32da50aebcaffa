//! Makes certificates, and reads them.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error as RcgenError, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use stayput_http::pem::{Validity, certificates};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::decide::{Authority, BACKDATED, Id, Serving};

/// Life of a CA in seconds.
const AUTHORITY_LIFE: u64 = 10 * 365 * 24 * 3600;
/// Life of a certificate of managers in seconds.
const SERVING_LIFE: u64 = 365 * 24 * 3600;
/// The longest common name that X.509 allows.
const MAX_COMMON_NAME: usize = 64;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
}

/// Never shows the key.
impl std::fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Pair(…)")
    }
}

/// Why a certificate cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A key or a certificate that was made elsewhere, or no random numbers.
    #[error("{0}")]
    Make(#[from] RcgenError),
    /// The key's signature does not fit the CA's certificate.
    #[error("the key is not that of the CA, or the CA was not made by stayput")]
    OtherKey,
    /// Not PEM.
    #[error("{0}")]
    Pem(String),
    /// PEM of a certificate that cannot be read.
    #[error("{0} has a certificate that cannot be read")]
    Unreadable(&'static str),
}

/// A new CA for the managers of a cluster.
///
/// # Errors
/// If the system has no random numbers.
pub fn authority(cluster: &str, now: u64) -> Result<Pair, IssueError> {
    let mut params = of_authority(cluster);
    set_validity(&mut params, now, now.saturating_add(AUTHORITY_LIFE));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A new certificate for the managers, for `name` alone.
///
/// # Errors
/// If this CA cannot sign it.
pub fn serving(ca: &Pair, cluster: &str, name: &str, now: u64) -> Result<Pair, IssueError> {
    let chain = certificates("the CA", ca.certificate.as_bytes()).map_err(IssueError::Pem)?;
    let until = Validity::of(&chain).ok_or(IssueError::Unreadable("the CA"))?.not_after;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    // With the name of its own certificate, OpenSSL takes each for one that signed itself.
    params.distinguished_name = distinguished(name);
    set_validity(&mut params, now, now.saturating_add(SERVING_LIFE).min(until));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(of_authority(cluster), KeyPair::from_pem(&ca.key)?);
    let certificate = params.signed_by(&key, &issuer)?;
    if chain.iter().all(|ca| !is_signed_by(certificate.der(), ca, now)) {
        return Err(IssueError::OtherKey);
    }
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The CAs in a PEM document.
///
/// # Errors
/// If the document is something else.
pub fn read_authorities(pem: &[u8]) -> Result<Vec<Authority>, IssueError> {
    let name = "the CA";
    let read = |certificate: CertificateDer<'static>| {
        let validity = Validity::of(std::slice::from_ref(&certificate));
        let validity = validity.ok_or(IssueError::Unreadable(name))?;
        Ok(Authority { id: id(&certificate), validity })
    };
    certificates(name, pem).map_err(IssueError::Pem)?.into_iter().map(read).collect()
}

/// The certificate of managers, in a PEM document; the CA in `authorities` that signed it, and
/// whether it is for `name`.
///
/// # Errors
/// If the document is something else.
pub fn read_serving(pem: &[u8], authorities: &[&[u8]], name: &str) -> Result<Serving, IssueError> {
    let what = "the managers' certificate";
    let chain = certificates(what, pem).map_err(IssueError::Pem)?;
    let validity = Validity::of(&chain).ok_or(IssueError::Unreadable(what))?;
    let leaf = chain.first().ok_or(IssueError::Unreadable(what))?;
    let known = authorities.iter().filter_map(|pem| certificates("the CA", pem).ok()).flatten();
    let signed_by = known.filter(|ca| is_signed_by(leaf, ca, validity.not_after));
    let is_named = ServerName::try_from(name).is_ok_and(|name| {
        let leaf = EndEntityCert::try_from(leaf);
        leaf.is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(&name).is_ok())
    });
    Ok(Serving { validity, signed_by: signed_by.map(|ca| id(&ca)).next(), is_named })
}

/// The wanted certificates of PEM documents, in the order of `wanted`.
pub fn select(documents: &[&[u8]], wanted: &[Id]) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let texts = documents.iter().filter_map(|document| std::str::from_utf8(document).ok());
    let sections: Vec<(Id, &str)> = texts
        .flat_map(|text| text.split_inclusive(END))
        .filter_map(|section| {
            let certificate = certificates("the CA", section.as_bytes()).ok()?;
            Some((id(certificate.first()?), section.trim()))
        })
        .collect();
    let section = |wanted: &Id| sections.iter().find(|(id, _)| id == wanted);
    wanted.iter().filter_map(section).map(|(_, section)| format!("{section}\n")).collect()
}

fn is_signed_by(leaf: &CertificateDer<'_>, ca: &CertificateDer<'_>, at: u64) -> bool {
    let (Ok(leaf), Ok(anchor)) = (EndEntityCert::try_from(leaf), anchor_from_trusted_cert(ca))
    else {
        return false;
    };
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
    let usage = KeyUsage::server_auth();
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &[anchor], &[], at, usage, None, None).is_ok()
}

fn id(certificate: &CertificateDer<'_>) -> Id {
    let mut id = Id([0; 32]);
    id.0.copy_from_slice(digest(&SHA256, certificate).as_ref());
    id
}

/// Common parameters of all CAs of a cluster: the next one has the same name and another key.
fn of_authority(cluster: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(&format!("stayput of {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn distinguished(name: &str) -> rcgen::DistinguishedName {
    let mut all = rcgen::DistinguishedName::new();
    let name: String = name.chars().take(MAX_COMMON_NAME).collect();
    all.push(DnType::CommonName, name);
    all
}

fn set_validity(params: &mut CertificateParams, now: u64, until: u64) {
    let date = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = date(now.saturating_sub(BACKDATED));
    params.not_after = date(until);
}
