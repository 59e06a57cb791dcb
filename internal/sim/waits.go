package sim

import (
	"fmt"
	"io"
)

// WriteWaits writes what became of each job as CSV, times in seconds since the
// log's begin; start, wait and end are empty where there are none.
func WriteWaits(w io.Writer, cfg config, r result) error {
	if _, err := fmt.Fprintln(w, "job_id,submit_s,wait_s,start_s,end_s,user"); err != nil {
		return err
	}
	for i, o := range r.Outcomes {
		j := &cfg.Jobs[i]
		wait, start, end := "", "", ""
		if o.Start >= 0 {
			wait, start = decimal(int64(o.Start-j.Submit)), decimal(int64(o.Start))
		}
		if o.End >= 0 {
			end = decimal(int64(o.End))
		}
		if _, err := fmt.Fprintf(w, "%s,%s,%s,%s,%s,%s\n", j.Name, decimal(int64(j.Submit)), wait, start, end, j.User); err != nil {
			return err
		}
	}
	return nil
}

// decimal is milliseconds in seconds, without zeros at the end.
func decimal(ms int64) string {
	if ms%1000 == 0 {
		return fmt.Sprint(ms / 1000)
	}
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}
