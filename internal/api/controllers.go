package api

// Controller is one of several that have all records in common.
type Controller struct {
	Name    string `json:"name"`
	Address string `json:"address"`         // for the other controllers
	Leads   bool   `json:"leads"`           // it decides
	Counts  bool   `json:"counts"`          // it is one of those of which a majority must have a record; else it is catching up
	Answers bool   `json:"answers"`         // the one that leads has reached it lately
	Alone   bool   `json:"alone,omitempty"` // there are no others, and none can join as it is configured

	Behind uint64 `json:"behind,omitempty"` // so many entries of the common log it lacked when it was asked last
	Stuck  bool   `json:"stuck,omitempty"`  // it lacks some, and has taken none for a minute: most often its disk was emptied or it was restored, and it was not added again

	Version    string   `json:"version,omitempty"`    // of its program, as it said last; empty: it has not yet, or is too old to say
	Differs    []string `json:"differs,omitempty"`    // settings that its file has otherwise than that of the one that leads; compared where both have one version
	Unreadable string   `json:"unreadable,omitempty"` // why its configuration cannot be used, so that it could not lead
}

// ControllerList is all controllers.
type ControllerList struct {
	Controllers []Controller `json:"controllers"`
}

// Leader says which of several controllers leads.
type Leader struct {
	Name string `json:"name"` // empty: there is one controller, or none is known to lead
}

// NewController is one that shall take part.
type NewController struct {
	Name    string `json:"name"`
	Address string `json:"address"` // HOST:PORT by which the others reach it
}

// JoinFile is what a machine needs to be one of the controllers. It holds all keys.
type JoinFile struct {
	NewController
	Keys map[string][]byte `json:"keys"` // by file

	Entry uint64 `json:"entry,omitempty"` // of the common log: until it has that it votes for nobody; 0: of an older controller

	PatienceS int64 `json:"patienceS,omitempty"` // how long the one that leads may be silent, which all shall have alike; 0: the default
}
