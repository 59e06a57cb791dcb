package places

import "context"

type answerKey struct{}

// WithAnswer lets the handler of a request wait for room for its answer when it
// begins to make it, and not while it waits for something to tell.
func WithAnswer(ctx context.Context, wait func() bool) context.Context {
	return context.WithValue(ctx, answerKey{}, wait)
}

// Answer waits for room in memory for the answer of a request; false: the client
// has gone. The place is held until the request is over.
func Answer(ctx context.Context) bool {
	wait, ok := ctx.Value(answerKey{}).(func() bool)
	return !ok || wait()
}
