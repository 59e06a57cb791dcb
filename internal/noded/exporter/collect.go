package exporter

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/metrics"
	"gbatch/internal/node"
	"gbatch/internal/noded/devices"
)

var (
	gpuLabels = []string{"gpu", "uuid", "model", "simulated"}
	jobLabels = []string{"job", "rank"}
)

func gpuGauge(name, help string) metrics.Family { return metrics.Gauge(name, help, gpuLabels...) }
func gpuCount(name, help string) metrics.Family { return metrics.Counter(name, help, gpuLabels...) }
func jobGauge(name, help string) metrics.Family { return metrics.Gauge(name, help, jobLabels...) }
func jobCount(name, help string) metrics.Family { return metrics.Counter(name, help, jobLabels...) }

// What is read at scrape time.
var (
	mBuild     = metrics.Gauge("gnoded_build_info", "1, with the version of the daemon.", "version")
	mHealthy   = metrics.Gauge("gnoded_healthy", "1 if the node takes jobs, 0 if something keeps it from that.")
	mCheck     = metrics.Gauge("gnoded_health_check_passed", "1 if a check of the machine found nothing at the last look, 0 if it did.", "check")
	mRanks     = metrics.Gauge("gnoded_containers", "Containers on the node by phase; ended ones until the controller has heard of it.", "phase")
	mShims     = metrics.Gauge("gnoded_waiting_shims", "Shims that wait for a container.")
	mContact   = metrics.Gauge("gnoded_controller_silence_seconds", "Time since the controller answered last, in seconds.")
	mCert      = metrics.Gauge("gnoded_certificate_expiry_timestamp_seconds", "Until when the node's certificate holds, in seconds since 1970; it is renewed before. A node on the controller's own machine has none.")
	mFree      = metrics.Gauge("gnoded_disk_free_bytes", "Free space of the daemon's directories, in bytes.", "directory")
	mMinFree   = metrics.Gauge("gnoded_disk_min_free_bytes", "Free space below which the node takes no jobs, in bytes.")
	mImages    = metrics.Gauge("gnoded_images", "Images that are kept.")
	mStored    = metrics.Gauge("gnoded_image_bytes", "What images take on disk, unpacked, in bytes.")
	mStore     = metrics.Gauge("gnoded_image_max_bytes", "What images may take before the oldest go, in bytes.")
	mKept      = metrics.Gauge("gnoded_kept_log_bytes", "Logs of ended containers that are kept, in bytes.")
	mUnsent    = metrics.Gauge("gnoded_unsent_log_bytes", "Output that is to be kept by the controller and was not sent yet, in bytes.")
	mUnsentAge = metrics.Gauge("gnoded_unsent_log_age_seconds", "For how long the oldest byte of output waits that is not sent yet, in seconds; 0: all is sent.")

	mGPUOK     = gpuGauge("gnoded_gpu_healthy", "1 if the GPU is fit for jobs.")
	mGPUUse    = gpuGauge("gnoded_gpu_utilization_ratio", "Part of the last sampling period in which a kernel ran, from 0 to 1.")
	mGPUCopy   = gpuGauge("gnoded_gpu_memory_utilization_ratio", "Part of the last sampling period in which its memory was read or written, from 0 to 1.")
	mGPUUsed   = gpuGauge("gnoded_gpu_memory_used_bytes", "Memory in use on the GPU, in bytes.")
	mGPUTotal  = gpuGauge("gnoded_gpu_memory_bytes", "Memory of the GPU, in bytes.")
	mGPUPower  = gpuGauge("gnoded_gpu_power_watts", "Power that the GPU draws, in watts.")
	mGPUEnergy = gpuCount("gnoded_gpu_energy_joules_total", "Energy that the GPU has taken since the driver was loaded, in joules.")
	mGPUTemp   = gpuGauge("gnoded_gpu_temperature_celsius", "Temperature of the GPU, in degrees Celsius.")
	mGPUClock  = gpuGauge("gnoded_gpu_clock_hertz", "Clock of the multiprocessors, in hertz.")
	mGPUMClock = gpuGauge("gnoded_gpu_memory_clock_hertz", "Clock of the GPU's memory, in hertz.")
	mGPUXIDs   = gpuCount("gnoded_gpu_xid_errors_total", "Errors (XID) that the driver reported since the daemon started.")
	mGPUXID    = gpuGauge("gnoded_gpu_last_xid", "Number of the last of them; 0: none.")
	mGPUSoft   = gpuCount("gnoded_gpu_ecc_corrected_total", "Memory errors that were corrected, since the GPU's last reset.")
	mGPUHard   = gpuCount("gnoded_gpu_ecc_uncorrected_total", "Memory errors that were not corrected, since the GPU's last reset.")

	mGPUJob = metrics.Gauge("gbatch_gpu_job_info", "1 for each job that holds the GPU now, to join with other metrics by uuid.", "uuid", "job", "user", "project")

	mJob      = metrics.Gauge("gnoded_job_info", "1 for each container that is here now, with whose it is.", "job", "rank", "user", "project")
	mJobCPU   = jobCount("gnoded_job_cpu_seconds_total", "Processor time of a container, in seconds.")
	mJobMem   = jobGauge("gnoded_job_memory_bytes", "Memory charged to a container, with page cache, in bytes.")
	mJobHeld  = jobGauge("gnoded_job_memory_held_bytes", "Memory of a container that cannot be taken back from it, in bytes.")
	mJobLimit = jobGauge("gnoded_job_memory_limit_bytes", "Memory that a container may use, in bytes.")
	mJobOOM   = jobCount("gnoded_job_oom_kills_total", "Processes of a container that its memory limit killed.")
	mJobPids  = jobGauge("gnoded_job_processes", "Processes and threads of a container.")
	mJobsLeft = metrics.Gauge("gnoded_jobs_without_metrics", "Containers that have no metrics of their own, because there are too many.")
)

var families = []metrics.Family{mBuild, mHealthy, mCheck, mRanks, mShims, mContact, mCert, mFree, mMinFree, mImages, mStored, mStore, mKept, mUnsent, mUnsentAge,
	mGPUOK, mGPUUse, mGPUCopy, mGPUUsed, mGPUTotal, mGPUPower, mGPUEnergy, mGPUTemp, mGPUClock, mGPUMClock, mGPUXIDs, mGPUXID, mGPUSoft, mGPUHard,
	mGPUJob, mJob, mJobCPU, mJobMem, mJobHeld, mJobLimit, mJobOOM, mJobPids, mJobsLeft}

// maxJobSeries bounds the containers that have metrics of their own.
const maxJobSeries = 500

func (e *Exporter) collector() *metrics.Collector {
	return &metrics.Collector{Families: families, Read: func(set *metrics.Set) {
		list, phases := e.Containers()
		e.addNode(set, phases)
		for _, g := range e.Devices.Readings() {
			addGPU(set, g)
		}
		for _, h := range list {
			for _, uuid := range h.GPUs {
				set.Add(mGPUJob, 1, uuid, h.Job, h.User, h.Project)
			}
		}
		for _, h := range list[:min(maxJobSeries, len(list))] {
			e.addJob(set, h)
		}
		set.Add(mJobsLeft, float64(max(0, len(list)-maxJobSeries)))
	}}
}

var phases = []node.Phase{node.PhaseAccepted, node.PhasePulling, node.PhaseStarting, node.PhaseRunning, node.PhaseEnded}

func (e *Exporter) addNode(set *metrics.Set, count map[node.Phase]int) {
	set.Add(mBuild, 1, e.Version)
	healthy := 0.0
	if e.Healthy() {
		healthy = 1
	}
	set.Add(mHealthy, healthy)
	failing := e.Failing()
	for _, check := range e.Config.Health.Checks() {
		passed := 1.0
		if failing[check] {
			passed = 0
		}
		set.Add(mCheck, passed, check)
	}
	for _, p := range phases {
		set.Add(mRanks, float64(count[p]), string(p))
	}
	set.Add(mShims, float64(e.Shims()))
	set.Add(mContact, e.Silence().Seconds())
	if until := e.Expiry(); !until.IsZero() {
		set.Add(mCert, float64(until.Unix()))
	}
	for what, dir := range map[string]string{"state": e.Config.StateDir, "images": e.Config.Images.Dir} {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil {
			set.Add(mFree, float64(int64(st.Bavail)*st.Bsize), what)
		}
	}
	set.Add(mMinFree, float64(e.Config.MinFree))
	images, bytes := e.Images()
	set.Add(mImages, float64(images))
	set.Add(mStored, float64(bytes))
	set.Add(mStore, float64(e.Config.Images.MaxSize))
	set.Add(mKept, float64(e.KeptLogs()))
	bytes, age := e.Unsent()
	set.Add(mUnsent, float64(bytes))
	set.Add(mUnsentAge, age.Seconds())
}

// addGPU leaves out what the driver does not tell.
func addGPU(set *metrics.Set, g devices.Reading) {
	labels := []string{strconv.Itoa(g.GPU.Index), g.GPU.UUID, g.GPU.Model, strconv.FormatBool(g.Simulated)}
	ok := 1.0
	if g.GPU.Unhealthy != "" {
		ok = 0
	}
	set.Add(mGPUOK, ok, labels...)
	s := g.Sample
	for _, v := range []struct {
		of    metrics.Family
		value float64
		unit  float64
	}{
		{mGPUUse, s.Utilization, 0.01}, {mGPUCopy, s.MemCopy, 0.01}, {mGPUUsed, float64(s.MemUsedBytes), 1}, {mGPUTotal, float64(s.MemTotalBytes), 1},
		{mGPUPower, s.PowerWatts, 1}, {mGPUEnergy, s.EnergyJ, 1}, {mGPUTemp, s.Celsius, 1}, {mGPUClock, s.SMMHz, 1e6}, {mGPUMClock, s.MemMHz, 1e6},
		{mGPUXIDs, float64(s.XIDs), 1}, {mGPUXID, float64(s.XID), 1}, {mGPUSoft, float64(s.Corrected), 1}, {mGPUHard, float64(s.Uncorrected), 1},
	} {
		if v.value >= 0 {
			set.Add(v.of, v.value*v.unit, labels...)
		}
	}
}

func (e *Exporter) addJob(set *metrics.Set, h Container) {
	rank := strconv.Itoa(int(h.ID.Rank))
	set.Add(mJob, 1, h.Job, rank, h.User, h.Project)
	set.Add(mJobLimit, float64(h.Mem), h.Job, rank)
	g, err := e.Host.Cgroups.Find(e.Host.CgroupPath(h.Place))
	if err != nil {
		return
	}
	st, err := g.Stats()
	if err != nil {
		return // it has no group yet, or no more
	}
	set.Add(mJobCPU, time.Duration(st.CPUNanos).Seconds(), h.Job, rank)
	set.Add(mJobMem, float64(st.MemoryBytes), h.Job, rank)
	set.Add(mJobHeld, float64(st.HeldBytes), h.Job, rank)
	set.Add(mJobOOM, float64(st.OOMKills), h.Job, rank)
	set.Add(mJobPids, float64(st.Pids), h.Job, rank)
}
