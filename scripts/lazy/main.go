// Command lazy measures when a program in a large image is ready: where the whole image is pulled
// first, as gnoded does, and where files come when they are read, by the reference file system of
// the eStargz format. It is a module of its own, so that gbatch has none of what it needs.
//
//	go run . [-mib 256] [-turns 3]      (as root)
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// link is one to a registry.
type link struct {
	name    string
	bytes   float64 // a second
	latency time.Duration
}

var links = []link{
	{"1 Gbit/s, 0.3 ms", 118e6, 300 * time.Microsecond},
	{"10 Gbit/s, 0.3 ms", 1180e6, 300 * time.Microsecond},
	{"1 Gbit/s, 20 ms", 118e6, 20 * time.Millisecond},
}

// parts are how much of the image's files a program reads before it is ready.
var parts = []float64{0.02, 0.1, 0.25, 0.5, 1}

func main() {
	mib := flag.Int("mib", 256, "size of the image's files")
	turns := flag.Int("turns", 3, "how often each is measured")
	flag.Parse()
	if err := run(*mib, *turns); err != nil {
		fmt.Fprintln(os.Stderr, "lazy:", err)
		os.Exit(1)
	}
}

func run(mib, turns int) error {
	files := makeFiles(mib << 20)
	plain, err := makeLayer(files, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%d files, %d MiB, %d MiB packed\n\n", len(files), mib, len(plain.blob)>>20)
	fmt.Println("| link | read of the image | whole pull | lazy | lazy, the rest behind it | lazy, packed in the order of use |\n|---|---|---|---|---|---|")
	for _, part := range parts {
		needed := workingSet(files, part)
		ordered, err := makeLayer(files, needed)
		if err != nil {
			return err
		}
		for _, l := range links {
			ways := []func() (time.Duration, error){
				func() (time.Duration, error) { return whole(plain, l, needed) },
				func() (time.Duration, error) { return lazy(plain, l, needed, how{}) },
				func() (time.Duration, error) { return lazy(plain, l, needed, how{behind: true}) },
				func() (time.Duration, error) { return lazy(ordered, l, needed, how{behind: true, ahead: true}) },
			}
			took := make([][]time.Duration, len(ways))
			for range turns {
				for i, way := range ways {
					d, err := way()
					if err != nil {
						return fmt.Errorf("%s, %.0f %%, way %d: %w", l.name, part*100, i+1, err)
					}
					took[i] = append(took[i], d)
				}
			}
			fmt.Printf("| %s | %.0f %% |", l.name, part*100)
			for _, list := range took {
				slices.Sort(list)
				fmt.Printf(" %.2f s (%.2f to %.2f) |", list[len(list)/2].Seconds(), list[0].Seconds(), list[len(list)-1].Seconds())
			}
			fmt.Println()
		}
	}
	return nil
}
