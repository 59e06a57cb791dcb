package ctld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// markedJob is a job of whose fields each that takes a text says hush.
func markedJob(gbatch string) []byte {
	return []byte(`{"name":"hush-name","description":"hush-description",
		"request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},
			"docker":{"image":"hush.example/hush-image:1","command":"hush-command","environment":{"HUSH":"hush-value"},"workingDir":"/hush-dir","user":"hush-user",
				"groupAdd":["hush-group"],"storage":[{"hostPath":"/hush-storage","containerPath":"/hush-path"}]},
			"scheduling":{"maxSimultaneousJobs":{"bucketName":"hush-bucket","bucketMax":5}},
			"extra":{"emailOnEnd":["hush@example.org"]}},
		"gbatch":{"labels":{"hush":"hush-label"},"priority":-77,"inputs":[{"uri":"s3://hush-in/x","path":"/hush-input"}],
			"outputs":[{"uri":"s3://hush-out/x/","path":"/hush-output"}],"progressFile":"/hush-progress",
			"secrets":[{"name":"hush-secret","value":"hush-hush"}]` + gbatch + `}}`)
}

// secretWords is what of another's job is not shown: what its owner wrote, and
// why it waits, failed or is where it is.
var secretWords = regexp.MustCompile(`(?i)hush|"reason":"[A-Za-z]|reasonText|"dependency"|"priority"|"factors"|exitCode|restartInfo|"template"|"successor"|estStart|"parallelism"|"attempts"|"events"|"spec"|"used"`)

// markedSite has jobs of ann in every state, in a project of ann and mia whose
// name begins with lab. Nobody may know of the project quiet but root.
func markedSite(t *testing.T) (s *testSite, ids []string) {
	s = newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Members: byName("ann", "mia")}, {Name: "quiet", Members: byName("zoe")}}
		c.Operators, c.Admins = byName("ops"), byName("boss")
		c.Nodes.Suspect, c.Nodes.Timeout = 3600, 7200 // its node does not call while the test asks, however long that takes
	})
	n := s.node("n1")
	now := time.Now()
	if _, err := s.Reserve(t.Context(), api.Reservation{Name: "night", Reason: "hush-reason", Start: now.Add(9000 * time.Hour), End: now.Add(9001 * time.Hour), Nodes: []string{"n1"},
		Projects: []string{"lab", "quiet"}, Users: []string{"zoe"}}); err != nil {
		t.Fatal(err)
	}
	ann := s.user("ann")
	submit := func(gbatch, dep string) string {
		t.Helper()
		r, err := ann.Submit(t.Context(), &api.SubmitRequest{Project: "lab", Job: markedJob(gbatch), Dependency: dep}, "")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Number)
	}
	failed := submit("", "")
	s.end(n, 1, &node.Exit{Code: 77, Reason: job.OOM, Message: "hush-message", StartedMS: time.Now().UnixMilli(), EndedMS: time.Now().UnixMilli()})
	runs := submit("", "")
	waitFor(t, "job 2 is assigned", func() bool { n.sync(nil); return len(n.runs) > 1 })
	id := job.RankID{Job: 2, Attempt: 1}
	n.held[id] = node.RankStatus{ID: id, Phase: node.PhaseRunning, Progress: "hush-progress", Done: &node.Done{Percent: 7, Name: "hush-done"}}
	n.sync(nil)
	awaits := submit("", "afterany:2")
	held := submit("", "")
	s.hold(ann, 4)
	array := submit(`,"tasks":{"indexes":"0-9","parallelism":3}`, "")
	template := submit(`,"cron":["0 0 1 1 *"]`, "")
	unlucky := submit("", "afterok:1") // can never start
	return s, []string{failed, runs, awaits, held, array, array + "_7", template, unlucky}
}

// TestNothingOfOthers asks every route that reads, and what can be asked of it by
// filters, of every kind of job and as every kind of caller. Those who may see
// the jobs see what was written there, and to all others nothing tells of it.
func TestNothingOfOthers(t *testing.T) {
	s, ids := markedSite(t)
	secret := func(user string) string { return s.token(api.TokenRequest{Use: api.TokenUser, User: user}).Secret }
	strangers := []column{{name: "nobody"}, {name: "eve", token: secret("eve")}, {name: "n2", cert: s.joined("n2").cert},
		{name: "join", token: s.token(api.TokenRequest{Use: api.TokenJoin}).Secret}}
	insiders := []column{{name: "ann", token: secret("ann")}, {name: "mia", token: secret("mia")}, {name: "ops", token: secret("ops")}, {name: "boss", token: secret("boss")}}
	query := map[string][]string{
		"/v1/jobs":    {"?all=true", "?all=true&factors=true", "?all=true&user=ann", "?all=true&project=lab&state=failed,queued,onhold,running", "?node=n1&all=true"},
		"/v1/history": {"", "?user=ann", "?newest=true"}, "/v1/usage": {"?by=project,user,day"},
	}
	seen := map[string]bool{"GET /v1/jobs": false, "GET /v1/jobs/{id}": false, "GET /v1/history": false, "GET /v1/reservations": false}
	for _, r := range s.server.api.Table {
		method, path, _ := strings.Cut(r.Pattern, " ")
		if method != http.MethodGet || path == api.PathEvents || path == api.PathAudit || path == "/metrics" {
			continue
		}
		paths := []string{strings.NewReplacer("{name}", "n1", "{id}", "1").Replace(path)}
		if strings.Contains(path, "/jobs/{id}") {
			paths = nil
			for _, id := range ids {
				paths = append(paths, strings.Replace(path, "{id}", id, 1))
			}
		}
		for _, p := range paths {
			for _, q := range append(query[p], "") {
				for _, c := range strangers {
					status, text := c.do(t, s, method, p+q, "")
					if at := secretWords.FindString(text); at != "" && status < 300 && !strings.Contains(p, "openapi") && p != api.PathCluster {
						t.Errorf("%s%s tells %s what is not theirs, %s: %s", p, q, c.name, at, text)
					} else if strings.Contains(text, "hush") {
						t.Errorf("%s%s tells %s: %s", p, q, c.name, text)
					}
					if strings.Contains(text, `"quiet"`) {
						t.Errorf("%s%s tells %s of a project that is not theirs: %s", p, q, c.name, text)
					}
				}
				for _, c := range insiders {
					if _, look := seen[r.Pattern]; !look {
						break // a log would wait for its node
					}
					_, text := c.do(t, s, method, p+q, "")
					seen[r.Pattern] = seen[r.Pattern] || strings.Contains(text, "hush")
				}
			}
		}
	}
	for pattern, some := range seen {
		if !some {
			t.Errorf("%s shows those who may see it nothing of what this test looks for", pattern)
		}
	}
}

// TestOthersCannotBeSearched: a filter finds others' jobs by nothing that is not
// shown of them, neither in lists nor in numbers.
func TestOthersCannotBeSearched(t *testing.T) {
	s, _ := markedSite(t)
	eve := column{name: "eve", token: s.token(api.TokenRequest{Use: api.TokenUser, User: "eve"}).Secret}
	mia := column{name: "mia", token: s.token(api.TokenRequest{Use: api.TokenUser, User: "mia"}).Secret}
	for _, path := range []string{"/v1/jobs?all=true&name=hush-name", "/v1/history?name=hush-name", "/v1/history?reason=OOM", "/v1/history?reason=OOM&reason=DEPENDENCY_FAILED&limit=1"} {
		for c, some := range map[*column]bool{&eve: false, &mia: true} {
			status, text := c.do(t, s, "GET", path, "")
			var l struct {
				Jobs  []api.Job
				Total int
			}
			if err := json.Unmarshal([]byte(text), &l); err != nil || status != 200 {
				t.Fatalf("%s: %d %s", path, status, text)
			}
			if (len(l.Jobs)+l.Total > 0) != some {
				t.Errorf("%s finds %s %d jobs", path, c.name, len(l.Jobs))
			}
		}
	}
	for _, body := range []string{`{"name":"hush-name","count":true}`, `{"user":"ann","count":true}`, `{"state":"onhold","count":true}`} {
		if _, text := eve.do(t, s, "POST", "/v1/actions/cancel", body); !strings.Contains(text, `"matched":0`) {
			t.Errorf("an action on %s answers %s", body, text)
		}
	}
}

// TestNoProjectOfOthers: an answer to a submission is the same for a project that
// is not the caller's and one that is not there, and names none of others.
func TestNoProjectOfOthers(t *testing.T) {
	s, _ := markedSite(t)
	eve := column{name: "eve", token: s.token(api.TokenRequest{Use: api.TokenUser, User: "eve"}).Secret}
	var answers []string
	for _, project := range []string{"quiet", "never"} {
		for _, dry := range []string{"true", "false"} {
			status, text := eve.do(t, s, "POST", "/v1/jobs", `{"dryRun":`+dry+`,"project":"`+project+`","job":`+hushJob+`}`)
			answers = append(answers, fmt.Sprint(status, strings.ReplaceAll(text, project, "P")))
		}
	}
	for _, a := range answers {
		if a != answers[0] || strings.Contains(a, "quiet") || !strings.Contains(a, "default") {
			t.Errorf("the answers are %q", answers)
			break
		}
	}
}

// TestNoEventsOfOthers: the stream says that others' jobs change, and not what of
// them is not shown elsewhere.
func TestNoEventsOfOthers(t *testing.T) {
	s, ids := markedSite(t)
	first := s.server.loop.Feed.Position() &^ (1<<32 - 1) // before all that this process did
	for user, told := range map[string]bool{"eve": false, "mia": true} {
		e := listen(t, s.user(user), client.EventFilter{After: first})
		var text []byte
		e.until(func(j *api.JobEvent) bool {
			line, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, line...), '\n')
			return j.ID == ids[len(ids)-1]
		})
		e.stop()
		if got := secretWords.Match(text); got != told {
			t.Errorf("%s is told: %s", user, text)
		}
	}
}
