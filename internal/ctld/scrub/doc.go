// Package scrub looks through what the controller keeps on its disk, slowly and again and again, so
// that damage is known before a start or a job meets it. It changes nothing of the store; an uploaded directory
// that is damaged is given up by its owner, who can bring it again, and of a kept log whoever reads it is told. Who opens the store owns it.
package scrub
