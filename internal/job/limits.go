package job

// Bounds of a document's values; docs/job-format.md lists them. They keep
// nonsense out and memory bounded; what a site allows is policy, elsewhere.
const (
	maxNameRunes        = 128
	maxDescriptionRunes = 4096
	maxCPUs             = 65536
	maxGPUs             = 1024    // per node
	maxMemoryGB         = 1 << 20 // 1 PiB
	maxGPUMemoryGB      = 65536
	maxClusterID        = 1_000_000
	maxCudaVersion      = 1000
	maxListEntries      = 100 // gpuModel, features, groupAdd, reservationIds
	maxPartitions       = 16  // each is tried by itself
	maxLicenses         = 16
	maxLicenseCount     = 1_000_000
	maxCronLines        = 20 // one that names no day that ever comes takes milliseconds to find out
	maxStorage          = 1000
	maxPortMappings     = 64
	maxVariables        = 2000
	maxArgs             = 10_000
	maxCommandBytes     = 1 << 20 // of all arguments together
	maxArgBytes         = 128<<10 - 1
	maxPathBytes        = 4095
	maxNodes            = 10_000
	maxNodeNames        = 1000 // that a job may have, or may not: each is kept with the job while it waits
	MaxPriority         = 1_000_000
	maxBucket           = 1_000_000
)
