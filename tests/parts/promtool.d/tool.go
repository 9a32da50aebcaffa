//go:build tools

// Pins promtool and every module of it.
package promtool

import _ "github.com/prometheus/prometheus/cmd/promtool"
