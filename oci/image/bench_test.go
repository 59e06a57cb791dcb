package image

import (
	"crypto/rand"
	"fmt"
	"testing"

	"gbatch/oci/image/imagetest"
)

// BenchmarkWarm is what a job pays for an image that the node has.
func BenchmarkWarm(b *testing.B) {
	for _, pinned := range []bool{false, true} {
		b.Run(fmt.Sprintf("pinned=%v", pinned), func(b *testing.B) {
			f := newRegistry(b)
			r, _ := f.push(b, "a/b:1", build(b, imagetest.Options{Busybox: true}))
			s := open(b, Config{})
			img, err := s.Pull(b.Context(), PullRequest{Ref: r})
			if err != nil {
				b.Fatal(err)
			}
			if pinned {
				r = img.Ref
			}
			for b.Loop() {
				if _, err := s.Pull(b.Context(), PullRequest{Ref: r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCold pulls 64 MiB in 2000 files from a registry in this process.
func BenchmarkCold(b *testing.B) {
	var files []imagetest.File
	for i := range 2000 {
		body := make([]byte, 32<<10)
		rand.Read(body[:16<<10]) // half of it compresses well
		files = append(files, imagetest.File{Name: fmt.Sprintf("f%d", i), Body: body})
	}
	f := newRegistry(b)
	r, _ := f.push(b, "a/b:1", build(b, imagetest.Options{Layers: [][]imagetest.File{files}}))
	s := open(b, Config{})
	b.SetBytes(64 << 20)
	for b.Loop() {
		if _, err := s.Pull(b.Context(), PullRequest{Ref: r}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s = open(b, Config{})
		b.StartTimer()
	}
}
