package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPictures makes the pictures of the web page that the documents show, of a
// site with simulated GPUs. It takes GBATCH_PICTURES, where to write them; see `make pictures`.
func TestPictures(t *testing.T) {
	to := os.Getenv("GBATCH_PICTURES")
	if to == "" {
		t.Skip("SKIPPED: it writes into the folder that GBATCH_PICTURES names; `make pictures` runs it")
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{nodes: 2, ctldConfig: quick + "admins: [root]\n", nodeConfig: "gpu: {simulate: \"h100:4\"}\n"})
	works := `printf "epoch 1: loss 2.31\nepoch 2: loss \033[32m1.87\033[0m\n"; trap "exit 0" TERM; while :; do sleep 0.1; done`
	submit := func(name string, args ...string) string {
		return strings.TrimSpace(s.must("gsubmit", append([]string{"--image", image, "--name", name, "--time", "4h"}, args...)...))
	}
	long := submit("tokenize", "--cpus", "4", "--mem", "8G", "--", "sleep", "70") // what runs for less than a minute is given no hints
	s.wait(submit("prepare-data", "--", "echo", "done"))
	s.wait(submit("lint", "--", "false"))
	train := submit("train-resnet", "--gpus", "2", "--", "sh", "-c", works)
	s.waitRunning(train)
	s.waitRunning(submit("finetune", "--gpus", "4", "--", "sh", "-c", works))
	submit("ablation", "--gpus", "4", "--time", "2h", "--", "true")
	submit("evaluate", "--gpus", "1", "--hold", "--", "true")
	submit("sweep", "--gpus", "3", "--array", "0-9", "--", "true")

	b := newBrowser(t)
	link := strings.TrimSpace(s.must("gadm", "web"))
	base, _, _ := strings.Cut(link, "#")
	b.do("have the size of a picture", chromedp.EmulateViewport(1280, 800))
	b.open(link)
	b.shows("ablation")
	b.picture(filepath.Join(to, "jobs.png"))
	b.open(base + "jobs/" + train)
	b.shows("epoch 2")
	b.picture(filepath.Join(to, "job.png"))
	b.open(base + "submit")
	b.until("the document is there", "document.querySelector('textarea')")
	b.text(`(() => {
		const e = document.querySelector('textarea'), at = e.value.indexOf('maxDuration')
		e.setSelectionRange(at, at)
		e.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true }))
	})()`)
	b.shows("request.scheduling.maxDuration: ")
	b.press("Check")
	b.shows("It would be taken")
	b.picture(filepath.Join(to, "submit.png"))
	b.open(base + "cluster")
	b.until("the GPUs of jobs are seen", "document.querySelectorAll('.gpu.runs').length === 6")
	b.shows("30 °C") // of simulated ones
	b.picture(filepath.Join(to, "cluster.png"))
	b.open(base + "jobs/" + train)
	b.shows("epoch 2")
	b.press("Extend")
	b.fill("dialog input", "6")
	b.picture(filepath.Join(to, "extend.png"))
	b.open(base + "operate?tab=rules")
	s.changedRules(b)
	b.picture(filepath.Join(to, "rules.png"))
	several := newBrowser(t)
	several.do("have the size of a picture", chromedp.EmulateViewport(1280, 420))
	c := newSeveral(t, siteOptions{ctldConfig: "operators: [root]\n"}, nil, nil)
	several.controllers(c)
	several.picture(filepath.Join(to, "controllers.png"))
	c.first()
	s.wait(long) // what was looked at meanwhile takes most of its time
	b.open(base + "shares")
	b.shows("would do")
	b.shows("tokenize")
	b.picture(filepath.Join(to, "shares.png"))
}

// changedRules changes the file of the rules, and asks what that would be, and what a node more.
func (s *site) changedRules(b *browser) {
	f, err := os.OpenFile(s.ctld.config, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("policy: {halfLife: 14 days}\n")
		f.Close()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.press("What would a reload change?")
	b.shows("+ policy.halfLife") // above what is pressed next
	b.press("What if …?")
	b.fill("details.whatif label:nth-child(2) input", "1x4xh100")
	b.press("Simulate")
	b.shows("would start sooner")
}

// picture writes what is seen of the page.
func (b *browser) picture(path string) {
	b.t.Helper()
	raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		b.t.Fatalf("make %s: %v", path, err)
	}
}
