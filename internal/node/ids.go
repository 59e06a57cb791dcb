package node

// What containers have of the numbers of users and groups: each user IDRange of
// them, somewhere before IDsEnd, beyond which programs take numbers for negative.
const (
	IDRange = 1 << 16
	IDsEnd  = 0x7fff0000
)
