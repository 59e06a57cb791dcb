package keep

import "testing"

// BenchmarkPack packs one line, as most pieces have.
func BenchmarkPack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		pack([]byte("epoch 3, loss 0.1234\n"))
	}
}
