// ECK's operator, by its own package: `eck manager OPTION…`. Only tests run it; nothing of it is shipped.
// It is under the Elastic License 2.0.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/elastic/cloud-on-k8s/v3/cmd/manager"
)

func main() {
	root := &cobra.Command{Use: "eck", SilenceUsage: true}
	root.AddCommand(manager.Command())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
