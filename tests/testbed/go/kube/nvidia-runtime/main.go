// What NVIDIA's container runtime is to real GPUs: a runc that, before it creates a container, adds the devices that
// the container's NVIDIA_VISIBLE_DEVICES names (indices or UUIDs; `all`; nothing for `void`, `none` or no such
// variable), and an nvidia-smi. The GPUs are those of the test cluster: device nodes with nothing behind them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

type gpu struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	Path  string `json:"path"`
}

type inventory struct {
	GPUs   []gpu             `json:"gpus"`
	Shared map[string]string `json:"shared"`
	SMI    string            `json:"smi"`
}

type object = map[string]any

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: nvidia-runtime GPUS.json RUNC-ARGUMENT…"))
	}
	arguments := os.Args[2:]
	if bundle := option(arguments, "--bundle"); bundle != "" && slices.Contains(arguments, "create") {
		if err := edit(os.Args[1], filepath.Join(bundle, "config.json")); err != nil {
			tell(option(arguments, "--log"), err)
			fail(err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{"runc"}, arguments...), os.Environ()))
}

func option(arguments []string, name string) string {
	if at := slices.Index(arguments, name); at >= 0 && at+1 < len(arguments) {
		return arguments[at+1]
	}
	return ""
}

// tell writes the error where containerd looks for the reason of a failure.
func tell(path string, err error) {
	line, _ := json.Marshal(object{"level": "error", "msg": err.Error()})
	if path != "" {
		_ = os.WriteFile(path, append(line, '\n'), 0o600)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "nvidia-runtime:", err)
	os.Exit(1)
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func edit(file, config string) error {
	var known inventory
	if err := read(file, &known); err != nil {
		return err
	}
	var bundle object
	if err := read(config, &bundle); err != nil {
		return err
	}
	chosen, err := visible(bundle, known.GPUs)
	if err != nil || len(chosen) == 0 {
		return err
	}
	nodes := map[string]string{}
	for _, one := range chosen {
		nodes[fmt.Sprintf("/dev/nvidia%d", one.Index)] = one.Path
	}
	for inside, outside := range known.Shared {
		nodes[inside] = outside
	}
	for inside, outside := range nodes {
		if err := addDevice(bundle, inside, outside); err != nil {
			return err
		}
	}
	addMount(bundle, "/usr/bin/nvidia-smi", known.SMI)
	text, err := json.Marshal(bundle)
	if err != nil {
		return err
	}
	return os.WriteFile(config, text, 0o600)
}

// visible is what the container may see. A name that no GPU has is an error, as it is with NVIDIA's.
func visible(bundle object, all []gpu) ([]gpu, error) {
	value := ""
	process, _ := bundle["process"].(object)
	environment, _ := process["env"].([]any)
	for _, entry := range environment {
		if text, _ := entry.(string); strings.HasPrefix(text, "NVIDIA_VISIBLE_DEVICES=") {
			_, value, _ = strings.Cut(text, "=")
		}
	}
	switch value {
	case "", "void", "none":
		return nil, nil
	case "all":
		return all, nil
	}
	var chosen []gpu
	for _, name := range strings.Split(value, ",") {
		at := slices.IndexFunc(all, func(one gpu) bool { return one.UUID == name || strconv.Itoa(one.Index) == name })
		if at < 0 {
			return nil, fmt.Errorf("nvidia-container-cli: device error: %s: unknown device", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

func child(parent object, name string) object {
	found, ok := parent[name].(object)
	if !ok {
		found = object{}
		parent[name] = found
	}
	return found
}

// addDevice does nothing where the device plugin has added the device before us.
func addDevice(bundle object, inside, outside string) error {
	var stat syscall.Stat_t
	if err := syscall.Stat(outside, &stat); err != nil {
		return fmt.Errorf("%s: %w", outside, err)
	}
	major, minor := (stat.Rdev>>8)&0xfff, (stat.Rdev&0xff)|((stat.Rdev>>12)&0xfff00)
	linux := child(bundle, "linux")
	devices, _ := linux["devices"].([]any)
	for _, entry := range devices {
		if found, _ := entry.(object); found["path"] == inside {
			return nil
		}
	}
	linux["devices"] = append(devices, object{
		"path": inside, "type": "c", "major": major, "minor": minor, "fileMode": 0o666, "uid": 0, "gid": 0,
	})
	resources := child(linux, "resources")
	rules, _ := resources["devices"].([]any)
	resources["devices"] = append(rules, object{"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"})
	return nil
}

func addMount(bundle object, inside, outside string) {
	mounts, _ := bundle["mounts"].([]any)
	for _, entry := range mounts {
		if found, _ := entry.(object); found["destination"] == inside {
			return
		}
	}
	options := []string{"ro", "nosuid", "nodev", "bind"}
	bundle["mounts"] = append(mounts, object{"destination": inside, "type": "bind", "source": outside, "options": options})
}
