// Package backup makes a backup of a controller that runs, and a state directory
// out of a backup.
package backup
