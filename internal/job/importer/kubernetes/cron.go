package kubernetes

import (
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign"
)

// everySo are the words that a schedule may be, as five fields.
var everySo = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}

// cronFields are those of a CronJob's spec.
func cronFields() []field[manifest] {
	return []field[manifest]{
		{"schedule", func(d *decoder, n *node, k *manifest) {
			text, _ := d.Str(n)
			if five := everySo[text]; five != "" {
				text = five
			}
			if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
				d.Problem(n, "has a time zone, which belongs into timeZone", "")
				return
			}
			k.spec.Gbatch.Cron = []string{strings.ReplaceAll(text, "?", "*")}
			d.Becomes("gbatch.cron", n)
		}, true},
		{"timeZone", func(d *decoder, n *node, k *manifest) { d.Text(n, &k.spec.Gbatch.CronZone, "gbatch.cronZone") }, false},
		{"concurrencyPolicy", func(d *decoder, n *node, k *manifest) {
			switch word, _ := d.OneOf(n, "Allow", "Forbid", "Replace"); word {
			case "Allow":
				d.Becomes("gbatch.cronOverlap", n)
			case "Forbid":
				k.spec.Gbatch.CronOverlap = false
			case "Replace":
				k.spec.Gbatch.CronOverlap, k.spec.Gbatch.Replace = false, true
				d.Becomes("gbatch.replace", n)
			}
		}, false},
		{"suspend", readSuspend, false},
		{"jobTemplate", func(d *decoder, n *node, k *manifest) {
			document.Object(d, n, []field[manifest]{
				{"metadata", func(d *decoder, n *node, k *manifest) { document.Object(d, n, metaFields(), &manifest{spec: k.spec}) }, false},
				{"spec", func(d *decoder, n *node, k *manifest) {
					k.jobSpec = n
					document.Object(d, n, specFields(), k)
				}, true},
			}, k)
		}, true},
		{"startingDeadlineSeconds", foreign.Remark[manifest]("is not used: of the times that passed while nothing could be started one is made up for"), false},
		{"successfulJobsHistoryLimit", foreign.Remark[manifest](history), false},
		{"failedJobsHistoryLimit", foreign.Remark[manifest](history), false},
	}
}

const history = "is not used: how long ended jobs are shown is set by the site, and gacct knows them longer"

// readSuspend has the job wait on hold until it is released: by its owner, or by Kueue
// when its turn has come, which is what every job waits for here.
func readSuspend(d *decoder, n *node, k *manifest) {
	if on, ok := d.Boolean(n); ok && on {
		k.held = n
	}
}
