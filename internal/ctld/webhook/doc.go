// Package webhook tells services of the site, and whom jobs name, what became of jobs: each message at
// least once, over restarts. What is to be told is a record, stored with the change
// that it tells of, and deleted when all have taken it. It knows the site's services
// and the jobs, and changes nothing but these records.
package webhook
