package site

// Names of files below Config.Dir.
const (
	StoreDir     = "store"
	logsDir      = "logs"
	VaultFile    = "secrets.key"
	TokenKeyFile = "token.key"
	TreesDir     = "trees"
	CurvesDir    = "curves"
	ReplicaDir   = "replica"
	ClockFile    = "clock" // what the controller's clock goes on from
)
