package state

import (
	"encoding/json"
	"reflect"
	"testing"

	"gbatch/internal/node"
)

// TestAlikeOnDisk sets each field of a node by itself: two nodes are alike on disk
// if, and only if, their records are. Knows is written down when it is much later.
func TestAlikeOnDisk(t *testing.T) {
	values := map[string]any{
		"Name": "n", "Instance": "i", "Boot": "b", "Hash": "h", "Drained": "fan (op)", "Double": "m", "Faults": uint64(1), "Version": uint64(1),
		"Knows": KnowsEvery, "Unsure": true, "Suspect": true, "Lost": true, "Inventory": Inventory{Inventory: node.Inventory{CPUs: 1}}, "Reboot": &Reboot{By: "op"}, "Trouble": &Trouble{Why: "w"},
		"DrainedGPUs": map[string]string{"GPU-a": "ECC"}, "Refused": Refused{Hash: "h"},
	}
	of := reflect.TypeFor[Node]()
	for i := range of.NumField() {
		f := of.Field(i)
		var a, b Node
		field := reflect.ValueOf(&b).Elem().Field(i)
		switch v, ok := values[f.Name]; {
		case ok:
			field.Set(reflect.ValueOf(v))
		case f.Type.Kind() == reflect.Slice:
			field.Set(reflect.MakeSlice(f.Type, 1, 1))
		case f.Type.Kind() == reflect.Int64:
			field.SetInt(1)
		default:
			t.Fatalf("%s: give it a value here", f.Name)
		}
		if got, want := AlikeOnDisk(&a, &b), string(Encode(a)) == string(Encode(b)); got != want || want != (f.Tag.Get("json") == "-") {
			x, _ := json.Marshal(b)
			t.Errorf("%s: alike %v, want %v: %s", f.Name, got, want, x)
		}
	}
}
