//! Amounts as Kubernetes writes them.

/// The number of thousandths that a quantity stands for, `1Gi` or `500m`, so that one amount in two
/// ways of writing is equal; `None` if the text is not a quantity or too large. Below a thousandth
/// it is rounded up, as Kubernetes does.
/// Source: `k8s.io/apimachinery/pkg/api/resource.Quantity`.
pub fn thousandths(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (digits, decimals) = number.split_once('.').unwrap_or((number, ""));
    let unscaled: i128 = format!("{digits}{decimals}").parse().ok()?;
    let below_one = 10i128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let (times, over) = factor(suffix)?;
    let over = over.checked_mul(below_one)?;
    let scaled = unscaled.checked_mul(times)?.checked_mul(1000)?;
    // The remainder counts as one more.
    Some(scaled.div_euclid(over) + i128::from(scaled.rem_euclid(over) != 0))
}

/// The factor of a suffix, as a fraction.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    let decimal = |exponent| 10i128.checked_pow(exponent);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, decimal(9)?),
        "u" => (1, decimal(6)?),
        "m" => (1, decimal(3)?),
        "k" => (decimal(3)?, 1),
        "M" => (decimal(6)?, 1),
        "G" => (decimal(9)?, 1),
        "T" => (decimal(12)?, 1),
        "P" => (decimal(15)?, 1),
        "E" => (decimal(18)?, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = decimal(power.unsigned_abs())?;
            if power < 0 { (1, size) } else { (size, 1) }
        }
    })
}
