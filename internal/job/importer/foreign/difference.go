package foreign

import (
	"reflect"
	"strings"

	"gbatch/internal/job"
)

// Difference is the path of the first native field in which two jobs differ; empty: in none.
func Difference(a, b job.Spec) string {
	return difference(reflect.ValueOf(a), reflect.ValueOf(b), "")
}

func difference(a, b reflect.Value, path string) string {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return ""
	}
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if a.Kind() != reflect.Struct {
		return path
	}
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		if at := difference(a.Field(i), b.Field(i), strings.TrimPrefix(path+"."+name, ".")); at != "" {
			return at
		}
	}
	return path
}
