// The first process of every pod: it holds the pod's namespaces open and ends when it is told.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Where containers share its PID namespace, orphans come to it; the kernel then reaps them.
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
