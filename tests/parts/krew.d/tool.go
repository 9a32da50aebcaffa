//go:build tools

// Pins krew and every module of it.
package krew

import _ "sigs.k8s.io/krew/cmd/krew"
