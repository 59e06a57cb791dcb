package models

import "testing"

func TestHas(t *testing.T) {
	for _, tc := range []struct {
		asked, model string
		want         bool
	}{
		{"l4", "NVIDIA L40S", true}, {"A100", "NVIDIA A100-SXM4-80GB", true}, {"A100 80GB", "NVIDIA A100-SXM4-80GB", false},
		{"=L4", "NVIDIA L4", true}, {"=NVIDIA-L4", "NVIDIA L4", true}, {"=l4", "NVIDIA L40S", false}, {"=L4", "NVIDIA L40S", false}, {"=L4 *", "NVIDIA L40S", false},
		{"=A100", "NVIDIA A100-SXM4-80GB", false}, {"=A100 *", "NVIDIA A100-SXM4-80GB", true}, {"=A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", true}, {"=A100 SXM4 80GB", "NVIDIA A100-SXM4-80GB", true},
		{"=A10 *", "NVIDIA A100-SXM4-80GB", false}, {"=A10 *", "NVIDIA A10", true}, {"=A10 *", "NVIDIA A10G", false}, {"=T4", "Tesla T4", true}, {"=Tesla-T4", "Tesla T4", true},
		{"=RTX4090 *", "NVIDIA GeForce RTX 4090", true}, {"=RTX4090 *", "NVIDIA GeForce RTX 4090 D", true}, {"=RTX4070 *", "NVIDIA GeForce RTX 4070 Ti", false}, {"=RTX4070Ti *", "NVIDIA GeForce RTX 4070 Ti", true},
		{"=rtxa6000 *", "NVIDIA RTX A6000", true}, {"=A6000", "NVIDIA RTX A6000", true}, {"=RTX A6000", "NVIDIA RTX A6000", true}, {"=A600 *", "NVIDIA RTX A6000", false}, {"=RTX", "NVIDIA RTX A6000", false}, {"=RTX6000 *", "NVIDIA RTX 6000 Ada Generation", false}, {"=RTX6000Ada *", "NVIDIA RTX 6000 Ada Generation", true},
		{"=H100 *", "NVIDIA H100 80GB HBM3", true}, {"=H100 *", "NVIDIA GH200 480GB", false}, {"=H10 *", "NVIDIA H100 80GB HBM3", false},
		{"nvidia_a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", true}, {"tesla_v100", "Tesla V100-SXM2-16GB", true}, {"a100_80gb", "NVIDIA A100-SXM4-80GB", false},
		{"=", "NVIDIA L4", false}, {"= *", "NVIDIA L4", false}, {"=NVIDIA *", "NVIDIA L4", false}, {"=L4", "", false},
	} {
		if got := Has(tc.asked, tc.model); got != tc.want {
			t.Errorf("%q, %q: %v", tc.asked, tc.model, got)
		}
	}
}
