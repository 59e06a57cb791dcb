package state

import "gbatch/internal/job"

// LicenseUse is what jobs have of the site's licences, by name.
type LicenseUse struct {
	Used  map[string]int64 // by jobs that hold resources
	Asked map[string]int64 // by jobs in the queue; of an array, by its tasks that are jobs
}

// Add counts a job.
func (u *LicenseUse) Add(j *Job) {
	if len(j.Request.Shape.Licenses) == 0 || j.Tasks != nil || j.Cron != nil {
		return
	}
	if u.Used == nil {
		u.Used, u.Asked = map[string]int64{}, map[string]int64{}
	}
	for _, x := range j.Request.Shape.Licenses {
		switch {
		case j.Holds():
			u.Used[x.Name] += x.Count
		case j.State == job.Queued:
			u.Asked[x.Name] += x.Count
		}
	}
}
