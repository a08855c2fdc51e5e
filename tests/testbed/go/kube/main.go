// One binary that is the component of Kubernetes its first argument names. Kubernetes ships each as a binary of its
// own; together they share most of their code, so one costs 130 MB where five cost half a gigabyte.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

// The name it is called by counts first, so that a link named kubectl is kubectl.
func component() string {
	called := filepath.Base(os.Args[0])
	if _, known := components[called]; known || called == "kubectl" {
		return called
	}
	if len(os.Args) > 1 {
		called = os.Args[1]
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	return called
}

func main() {
	name := component()
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}
	command, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: name one of kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl first\n", os.Args[0])
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
