package control

// endStep lets all follow that follows from a step: arrays whose tasks changed,
// and jobs that waited for those that began or ended.
func (c *step) endStep() {
	c.settleArrays()
	for c.settle(); len(c.touched) > 0; c.settle() {
		c.settleArrays()
	}
}

// finishStep is the end of every step.
func (c *step) finishStep() {
	c.endStep()
	c.recordUsage()
}
