package fawn_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const checkout = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// libraryFolder is where the library of this test is.
func libraryFolder(t *testing.T) string {
	for _, folder := range []string{os.Getenv("FAWN_LIB_DIR"), checkout + "/target/release", checkout + "/target/debug"} {
		if _, err := os.Stat(folder + "/libfawn.so.0"); folder != "" && err == nil {
			return must(filepath.Abs(folder))
		}
	}
	t.Skip("no libfawn.so.0 in FAWN_LIB_DIR or target: set it, or run make lib")
	return ""
}

// command runs a program in a folder and gives what it prints.
func command(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = folder
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Every function of the header has its place here.
func TestHeaderIsCovered(t *testing.T) {
	if _, err := os.Stat(checkout + "/include/fawn.h"); err != nil {
		t.Skip("not in a checkout of the library")
	}
	code := read(t, "internal/cabi/cabi.go") + read(t, "internal/cabi/wakeup.go")
	functions := regexp.MustCompile(`(?m)^(?:FAWN_API )?[a-z].*\b(fawn_\w+)\(`).FindAllStringSubmatch(read(t, checkout+"/include/fawn.h"), -1)
	if len(functions) < 31 {
		t.Errorf("%d functions", len(functions))
	}
	for _, function := range functions {
		if !strings.Contains(code, "C."+function[1]+"(") {
			t.Errorf("%s is not used", function[1])
		}
	}
}

// The program in the README is the one in examples/go/readme, and it does what the README says.
func TestReadmeProgram(t *testing.T) {
	if _, err := os.Stat(checkout + "/examples/go"); err != nil {
		t.Skip("not in a checkout of the library")
	}
	readme := read(t, "README.md")
	for name, path := range map[string]string{"program": "/examples/go/readme/main.go", "go.mod": "/examples/go/go.mod"} {
		if !strings.Contains(readme, "\n"+read(t, checkout+path)+"```\n") {
			t.Errorf("the %s in README.md is not %s", name, path)
		}
	}
	out := command(t, checkout+"/examples/go", nil, "go", "run", "./readme")
	if want := "calls get_weather({\"city\":\"Paris\"})\nIn Paris it is clear, with 18 degrees.\nsuccess after 3 steps\n"; out != want {
		t.Errorf("it prints\n%s", out)
	}
	if !strings.Contains(readme, "\n"+out+"```\n") {
		t.Error("README.md does not show what it prints")
	}
}

// The quickstart finds its thread again in the next process.
func TestQuickstart(t *testing.T) {
	if _, err := os.Stat(checkout + "/examples/go"); err != nil {
		t.Skip("not in a checkout of the library")
	}
	folder := t.TempDir()
	script := []string{"OPENAI_API_KEY="}
	command(t, checkout+"/examples/go", nil, "go", "build", "-o", folder, "./quickstart")
	out := command(t, folder, script, "./quickstart", ".", "What is the weather in Paris?") +
		command(t, folder, script, "./quickstart", ".", "And in Oslo?")
	want := `you:   What is the weather in Paris?
agent: [calls get_weather(Paris)] In Paris it is clear, with 18 degrees.
(last time: In Paris it is clear, with 18 degrees.)
you:   And in Oslo?
agent: [calls get_weather(Oslo)] Oslo has the same weather as Paris, which we spoke about before.
`
	if out != want {
		t.Errorf("it prints\n%s", out)
	}
}

// A program that vendors the module and has the library installed elsewhere builds by pkg-config.
func TestVendoredWithPkgConfig(t *testing.T) {
	if _, err := exec.LookPath("pkg-config"); err != nil {
		t.Skip("there is no pkg-config")
	}
	library, folder := libraryFolder(t), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fawn.pc", fmt.Sprintf("Name: fawn\nDescription: test\nVersion: 0\nLibs: -L%s -lfawn -Wl,-rpath,%s\nCflags: -I%s\n",
		library, library, must(filepath.Abs(checkout+"/include"))))
	write("go.mod", "module consumer\n\ngo 1.24\n\nrequire fawn/bindings/go v0.0.0\n\nreplace fawn/bindings/go => "+must(filepath.Abs("."))+"\n")
	write("main.go", "package main\n\nimport fawn \"fawn/bindings/go\"\n\nfunc main() { println(fawn.Version()) }\n")
	env := []string{"PKG_CONFIG_PATH=" + folder, "CGO_LDFLAGS=", "CGO_CFLAGS=", "CGO_LDFLAGS_ALLOW=-Wl,-rpath,.*"}
	command(t, folder, env, "go", "mod", "vendor")
	command(t, folder, env, "go", "build", "-tags", "fawn_pkgconfig", "-o", "consumer", ".")
	command(t, folder, nil, "./consumer")
	if _, err := os.Stat(folder + "/vendor/fawn/bindings/go/internal/cabi/flags_pkgconfig.go"); err != nil {
		t.Error(err)
	}
}
