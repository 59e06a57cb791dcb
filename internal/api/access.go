package api

import (
	"time"

	"gbatch/internal/job"
)

// Paths about who may do what.
const (
	PathTokens      = "/v1/tokens"                   // GET, POST
	PathToken       = "/v1/tokens/{id}"              // DELETE: revoke
	PathSession     = "/v1/session"                  // POST, DELETE: of the web page
	PathLogin       = "/v1/login"                    // GET: where to log in; POST: with what came of that, get a token
	PathLoginPage   = "/v1/login/page"               // GET: at which addresses the web page logs in; POST: begin to
	PathLoginReturn = "/v1/login/page/return"        // POST: with what the provider sent the browser back with, get a session
	PathSite        = "/v1/site"                     // GET: how to reach this controller
	PathNodeJoin    = "/v1/nodes/{name}/join"        // POST, with a join token: get the first certificate
	PathNodeRenew   = "/v1/nodes/{name}/certificate" // POST, that node only: get the next one
	PathNodeKey     = "/v1/nodes/{name}/key"         // DELETE: the node may speak no more
	PathProjects    = "/v1/projects"                 // GET
	PathProject     = "/v1/projects/{name}"          // PUT, DELETE
	PathPolicy      = "/v1/policy"                   // GET: the rules in force
	PathPolicyTest  = "/v1/policy/check"             // POST: what a reload would do
	PathPolicyLoad  = "/v1/policy/reload"            // POST
	PathWhatIf      = "/v1/what-if"                  // POST: who would wait for how long by other rules
	PathAudit       = "/v1/audit"                    // GET
	PathLeader      = "/v1/leader"                   // GET: which controller leads; ?not=NAME: as soon as it is another one, which those know that do not lead
	PathControllers = "/v1/controllers"              // GET; POST, root on the machine of the one that leads: let another take part
	PathController  = "/v1/controllers/{name}"       // DELETE
	PathLead        = "/v1/controllers/{name}/lead"  // POST: let that one lead; the name "any": the one that is the least behind
	PathBackup      = "/v1/backup"                   // POST, root on the controller's machine: a backup as bytes; ?vault=false
)

// What a token is for.
const (
	TokenUser  = "user"  // to speak for a user
	TokenJoin  = "join"  // to join nodes
	TokenLogin = "login" // to open the web page, once
	TokenWeb   = "web"   // what a browser has from then on, in a cookie: a session
)

// TokenRequest asks for a token.
type TokenRequest struct {
	Use   string `json:"use"`             // TokenUser, TokenJoin, TokenLogin
	User  string `json:"user,omitempty"`  // of a user token; empty: the caller
	Node  string `json:"node,omitempty"`  // of a join token: for this node only
	Uses  int    `json:"uses,omitempty"`  // of a join token: so many nodes; 0: 1
	LifeS int64  `json:"lifeS,omitempty"` // seconds; 0: 30 days, an hour to join, or two minutes to log in
	Note  string `json:"note,omitempty"`  // what it is for, at most 200 bytes
}

// Token is what is known of a token. Secret is the token itself: it is in the
// answer to its creation and nowhere else.
type Token struct {
	ID      string    `json:"id"`
	Use     string    `json:"use"`
	User    string    `json:"user,omitempty"`
	Node    string    `json:"node,omitempty"`
	Left    int       `json:"left,omitempty"` // uses of a token to join or to log in
	Of      string    `json:"of,omitempty"`   // of a session: the token that was shown for it, with which it ends
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by"` // who made it
	Note    string    `json:"note,omitempty"`
	Revoked time.Time `json:"revoked,omitzero"`
	Subject string    `json:"subject,omitempty"` // of a login: who it is to the identity provider
	Secret  string    `json:"secret,omitempty"`
}

// LoginSite is the answer of GET PathLogin: what a client asks of the site's identity
// provider, by OAuth's device flow.
type LoginSite struct {
	Issuer         string   `json:"issuer"`
	ClientID       string   `json:"clientId"`
	Scopes         []string `json:"scopes"`
	DeviceEndpoint string   `json:"deviceEndpoint"`
	TokenEndpoint  string   `json:"tokenEndpoint"`
}

// LoginPages is the answer of GET PathLoginPage.
type LoginPages struct {
	Issuer string   `json:"issuer"`
	Pages  []string `json:"pages"` // addresses of the page where a login can begin
}

// LoginAddress is the answer of POST PathLoginPage: where the browser is to go. What
// belongs to it is in a cookie.
type LoginAddress struct {
	Address string `json:"address"`
}

// LoginReturn is the body of POST PathLoginReturn, as the provider has put it into the
// address that it sent the browser back to. The answer is a session, in a cookie.
type LoginReturn struct {
	Code  string `json:"code" maxLength:"4096"`
	State string `json:"state" maxLength:"256"`
}

// LoginRequest is the body of POST PathLogin. The answer is a Token.
type LoginRequest struct {
	IDToken string `json:"idToken"` // as the provider gave it
}

// TokenList is the answer of GET PathTokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// Site is the answer of GET PathSite.
type Site struct {
	Pin     string `json:"pin"`               // of the controller's certificate authority
	Address string `json:"address,omitempty"` // join string: address with pin; empty: it listens on its socket only

	Page string `json:"page,omitempty"` // the web page of the controller that answers; empty: it listens on its socket only

	DefaultDurationS int64     `json:"defaultDurationS,omitempty"` // time limit of a job that names none, seconds
	MaxDurationS     int64     `json:"maxDurationS,omitempty"`     // longest that a job may ask for; 0: no bound
	GraceS           int64     `json:"graceS,omitempty"`           // between the stop signal and the end
	DefaultQOS       string    `json:"defaultQos,omitempty"`
	QOS              []SiteQOS `json:"qos,omitempty"` // the classes of service, by name

	JobsDomain string `json:"jobsDomain,omitempty"` // below which ports of jobs are shown in browsers; empty: they are not
}

// SiteQOS is a class of service that jobs may name.
type SiteQOS struct {
	Name     string   `json:"name"`
	Priority int64    `json:"priority"`
	Preempts []string `json:"preempts,omitempty"` // classes whose jobs make room for its own

	RunsAlone bool `json:"runsAlone,omitempty"` // its jobs run on where their node loses contact
}

// JoinRequest is the body of PathNodeJoin and PathNodeRenew.
type JoinRequest struct {
	Request string `json:"request"` // certificate request for the node's key, PEM
}

// JoinResponse is their answer.
type JoinResponse struct {
	Certificate string `json:"certificate"` // PEM
}

// Project is who is billed, as the rules say.
type Project struct {
	Name     string        `json:"name"`
	GID      int           `json:"gid,omitempty"`
	Members  []string      `json:"members,omitempty"` // users; empty with no Groups: everyone
	Groups   []string      `json:"groups,omitempty"`  // unix groups whose members are members
	Shares   int64         `json:"shares,omitempty"`
	Clusters []int         `json:"clusters,omitempty"`
	Limits   ProjectLimits `json:"limits,omitzero"`

	Parent     string           `json:"parent,omitempty"`     // a project, whose share this one has a part of
	UserShares map[string]int64 `json:"userShares,omitempty"` // of the project's share, by user; 1 for those that are not named
	Budget     int64            `json:"budget,omitempty"`     // GPU-minutes; 0: no bound

	BudgetPeriod string `json:"budgetPeriod,omitempty"` // BudgetMonth; empty: in all

	Privileged   bool             `json:"privileged,omitempty"`   // its jobs may be root on nodes that allow it
	Capabilities []job.Capability `json:"capabilities,omitempty"` // that its jobs may ask for on nodes that allow it
	HostNetwork  bool             `json:"hostNetwork,omitempty"`  // its jobs may use the network of nodes that allow it
	Runtime      string           `json:"runtime,omitempty"`      // that runs all its jobs, on nodes that have it

	Logs string `json:"logs,omitempty"` // where those of its jobs are kept; empty: where the site keeps them

	File bool `json:"file,omitempty"` // it is in the configuration file, and can be changed there only

	Warnings []string `json:"warnings,omitempty"` // in the answer to a change: whom the controller's machine does not know
}

// BudgetMonth is the period of a budget that is for each calendar month (UTC).
const BudgetMonth = "month"

// ProjectLimits bound what a project has at once; 0: the site's bound.
type ProjectLimits struct {
	Running    int     `json:"running,omitempty" yaml:"running,omitempty"`
	Queued     int     `json:"queued,omitempty" yaml:"queued,omitempty"`
	GPUs       float64 `json:"gpus,omitempty" yaml:"gpus,omitempty"`
	GPUMinutes int64   `json:"gpuMinutes,omitempty" yaml:"gpuMinutes,omitempty"`
}

// ProjectList is the answer of GET PathProjects.
type ProjectList struct {
	Projects []Project `json:"projects"`
}

// Policy is the rules in force, and for PathPolicyTest what would change.
type Policy struct {
	Text    string   `json:"text"`              // YAML, as in gctld.yaml
	Changes []string `json:"changes,omitempty"` // lines: "- " gone, "+ " new

	Warnings []string `json:"warnings,omitempty"` // whom the rules name that the controller's machine does not know
}

// AuditEntry is one change, or one that was refused.
type AuditEntry struct {
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	User   string    `json:"user"`
	Role   string    `json:"role"`
	From   string    `json:"from"`             // address, or "socket"
	Via    string    `json:"via"`              // how it is known who that is: socket, token ID, munge, certificate
	Action string    `json:"action"`           // method and path
	Object string    `json:"object,omitempty"` // what was changed: "node gpu01"
	Change string    `json:"change,omitempty"` // before and after, short
	Result string    `json:"result"`           // "ok", or why not
	Count  int       `json:"count,omitempty"`  // of what was refused: how often within about a minute
}

// AuditList is the answer of GET PathAudit, newest first.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
}

// PortRequest is the body of POST PathJobPort.
type PortRequest struct {
	Rank int    `json:"rank,omitempty" minimum:"0" maximum:"65535"`
	Path string `json:"path,omitempty" maxLength:"2048"` // where to begin there; empty: at /
}

// PortLink is its answer: a browser opens https://HOST/.gbatch/enter#SECRET, at the port of the
// page, within a minute and once.
type PortLink struct {
	Host   string `json:"host"`
	Secret string `json:"secret"`
}
