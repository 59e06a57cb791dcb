package gpu

import "fmt"

// xids are the driver's error numbers that are understood. What the driver
// reports and is not here is taken as a fault of the GPU.
//
// A job's own mistake must not take a GPU away from others, and a GPU that
// keeps failing jobs must not look free: between the two, the table follows
// NVIDIA's catalogue, where "restart the application" is the job's own.
var xids = map[uint64]struct {
	text string
	mine bool // the GPU's fault and not the job's
}{
	8:   {"a job's kernel ran into the time limit of the display", false},
	13:  {"a job's kernel made an illegal access", false},
	31:  {"a job's kernel read or wrote memory that it does not have", false},
	32:  {"a job sent a broken command stream", false},
	43:  {"a job's channel was stopped", false},
	45:  {"a job ended and its channels were removed", false},
	48:  {"uncorrectable memory error", true},
	56:  {"display engine error", true},
	61:  {"internal microcontroller breakpoint", true},
	62:  {"internal microcontroller halt", true},
	63:  {"a bad memory row was set aside", false},
	64:  {"a bad memory row could not be set aside", true},
	66:  {"a job made an illegal access by the driver", false},
	68:  {"video decoder error in a job", false},
	69:  {"a job's kernel raised a graphics engine error", false},
	74:  {"NVLink error", true},
	79:  {"the GPU fell off the bus", true},
	92:  {"many corrected memory errors", false},
	94:  {"a memory error was contained in one job", false},
	95:  {"a memory error could not be contained", true},
	109: {"a job's context switch timed out", false},
	110: {"security fault", true},
	119: {"the GPU's system processor does not answer", true},
	120: {"the GPU's system processor failed", true},
	121: {"corrected error of the link to the CPU", false},
	136: {"link training failed", true},
	137: {"a job made an illegal access over NVLink", false},
	140: {"uncorrectable memory error", true},
	143: {"the GPU could not be initialized", true},
}

// xidFault says what an XID means for the GPU: a text, or nothing when it was a
// job's own doing.
func xidFault(xid uint64) (text string, ok bool) {
	x, known := xids[xid]
	switch {
	case !known:
		return fmt.Sprintf("the driver reported XID %d: see dmesg; %s", xid, afterXID), true
	case !x.mine:
		return "", false
	}
	return fmt.Sprintf("%s (XID %d): %s", x.text, xid, afterXID), true
}

const afterXID = "stop gnoded, run nvidia-smi --gpu-reset or reboot, start gnoded"

// xidNote says what an XID was that is no fault of the GPU.
func xidNote(xid uint64) string { return fmt.Sprintf("%s (XID %d)", xids[xid].text, xid) }
