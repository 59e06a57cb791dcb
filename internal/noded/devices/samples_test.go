package devices

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/gpu"
)

func TestSamplesToAPI(t *testing.T) {
	half, used, warm := 50.0, int64(1<<30), 41.0
	got := samplesToAPI([]gpu.Sample{
		{UUID: "whole", Utilization: half, MemUsedBytes: used, Celsius: warm},
		{UUID: "instance", Utilization: -1, MemUsedBytes: used, Celsius: -1},
		{UUID: "silent", Utilization: -1, MemUsedBytes: -1, Celsius: -1},
	})
	want := []api.GPUSample{{UUID: "whole", Utilization: &half, MemUsed: &used, Celsius: &warm}, {UUID: "instance", MemUsed: &used}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSamplesDiffer(t *testing.T) {
	sample := func(util float64, mem int64) []api.GPUSample {
		return []api.GPUSample{{UUID: "a", Utilization: &util, MemUsed: &mem}}
	}
	cases := map[string]struct {
		a, b []api.GPUSample
		want bool
	}{
		"none":       {nil, nil, false},
		"first":      {nil, sample(0, 0), true},
		"noise":      {sample(50, 1<<30), sample(53, 1<<30+1), false},
		"busier":     {sample(50, 1<<30), sample(90, 1<<30), true},
		"allocated":  {sample(50, 1<<30), sample(50, 2<<30), true},
		"says less":  {sample(50, 1<<30), []api.GPUSample{{UUID: "a"}}, true},
		"other GPUs": {sample(50, 1<<30), []api.GPUSample{{UUID: "b"}}, true},
	}
	for name, tc := range cases {
		if got := SamplesDiffer(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
