//go:build tools

// Pins helm and every module of it.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
