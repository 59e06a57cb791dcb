package api

import "gbatch/internal/tree"

// Directories that users bring along for their jobs: see package tree.
const (
	PathTrees     = "/v1/trees"              // POST
	PathTreeChunk = "/v1/trees/chunks/{sum}" // PUT bytes

	PathNodeTree = "/v1/nodes/{name}/jobs/{id}/trees/{tree}" // GET bytes, nodes only
)

// TreeRequest asks to keep a tree of chunks that the caller has sent.
type TreeRequest struct {
	Chunks []tree.Chunk `json:"chunks" doc:"in their order"`
}

// TreeResponse names the tree, or says what is missing of it.
type TreeResponse struct {
	Tree    string   `json:"tree,omitempty" doc:"for tree:TREE as the uri of a job's input; empty: some chunks are missing"`
	Missing []string `json:"missing,omitempty" doc:"SHA-256 of chunks to send; then ask again"`
}
