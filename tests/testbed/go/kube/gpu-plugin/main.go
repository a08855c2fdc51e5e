// A device plugin that offers GPUs which do not exist, as NVIDIA's offers real ones: the kubelet picks some, and the
// container gets their device nodes, NVIDIA_VISIBLE_DEVICES with their UUIDs, and an nvidia-smi that lists them.
//
// What there is stands in a JSON file that the test cluster wrote. A device whose "healthy" is set to false there
// is reported so at once.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type gpu struct {
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Path    string `json:"path"`
	Healthy bool   `json:"healthy"`
}

type inventory struct {
	GPUs   []gpu             `json:"gpus"`
	Shared map[string]string `json:"shared"` // path in the container: path on the node; nvidiactl and the like
	SMI    string            `json:"smi"`
}

type plugin struct {
	api.UnimplementedDevicePluginServer
	file    string
	changed chan struct{}
}

func (p *plugin) read() (*inventory, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	var result inventory
	return &result, json.Unmarshal(text, &result)
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	for {
		known, err := p.read()
		if err != nil { // in the middle of being written: another change follows
			log.Printf("%s: %v", p.file, err)
		} else if err := stream.Send(devices(known)); err != nil {
			return err
		}
		select {
		case <-p.changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func devices(known *inventory) *api.ListAndWatchResponse {
	var answer api.ListAndWatchResponse
	for _, one := range known.GPUs {
		health := api.Healthy
		if !one.Healthy {
			health = api.Unhealthy
		}
		answer.Devices = append(answer.Devices, &api.Device{ID: one.UUID, Health: health})
	}
	return &answer
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	known, err := p.read()
	if err != nil {
		return nil, err
	}
	var answer api.AllocateResponse
	for _, container := range request.ContainerRequests {
		wanted := map[string]bool{}
		for _, id := range container.DevicesIds {
			wanted[id] = true
		}
		given := &api.ContainerAllocateResponse{
			Mounts: []*api.Mount{{ContainerPath: "/usr/bin/nvidia-smi", HostPath: known.SMI, ReadOnly: true}},
		}
		var uuids []string
		for _, one := range known.GPUs { // in the order of their index, as nvidia-smi lists them
			if wanted[one.UUID] {
				uuids = append(uuids, one.UUID)
				given.Devices = append(given.Devices, device(fmt.Sprintf("/dev/nvidia%d", one.Index), one.Path))
			}
		}
		names := make([]string, 0, len(known.Shared))
		for name := range known.Shared {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			given.Devices = append(given.Devices, device(name, known.Shared[name]))
		}
		given.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(uuids, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return &answer, nil
}

func device(inside, outside string) *api.DeviceSpec {
	return &api.DeviceSpec{ContainerPath: inside, HostPath: outside, Permissions: "rw"}
}

// serve offers the plugin on a socket in the kubelet's folder and tells the kubelet of it.
func serve(p *plugin, folder, resource string) (*grpc.Server, error) {
	own := filepath.Join(folder, "gpu-plugin.sock")
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	kubelet := "unix://" + filepath.Join(folder, "kubelet.sock")
	connection, err := grpc.NewClient(kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return server, err
	}
	defer connection.Close()
	patience, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_, err = api.NewRegistrationClient(connection).Register(patience, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(own), ResourceName: resource,
	}, grpc.WaitForReady(true)) // its socket is there a moment before it listens
	return server, err
}

func main() {
	file := flag.String("gpus", "", "the JSON file that lists the GPUs")
	folder := flag.String("folder", "", "the kubelet's folder for device plugins")
	resource := flag.String("resource", "nvidia.com/gpu", "the resource's name")
	flag.Parse()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range []string{*folder, filepath.Dir(*file)} {
		if err := watcher.Add(path); err != nil {
			log.Fatal(err)
		}
	}
	p := &plugin{file: *file, changed: make(chan struct{}, 1)}
	var server *grpc.Server
	var again <-chan time.Time
	// A kubelet that starts empties the folder and makes its socket anew: then, and at the beginning, it must be told.
	start := func() {
		again = nil
		if server != nil {
			server.Stop()
		}
		if server, err = serve(p, *folder, *resource); err != nil {
			log.Printf("the kubelet did not take %s: %v", *resource, err)
			again = time.After(time.Second)
			return
		}
		log.Printf("the kubelet knows of %s", *resource)
	}
	socket := filepath.Join(*folder, "kubelet.sock")
	if _, err := os.Stat(socket); err == nil {
		start()
	}
	for {
		select {
		case event := <-watcher.Events:
			switch {
			case event.Name == socket && event.Has(fsnotify.Create):
				start()
			case event.Name == *file && (event.Has(fsnotify.Create) || event.Has(fsnotify.Write)):
				select {
				case p.changed <- struct{}{}:
				default:
				}
			}
		case <-again:
			start()
		case err := <-watcher.Errors:
			log.Fatal(err)
		}
	}
}
