// Package floor keeps, apart from a database, how far the database has come: a
// count of its commits and a hash over all of them. A database that lost
// acknowledged commits, or that was exchanged for another or older one, is
// behind its floor, which it cannot notice by itself.
//
// It knows nothing of what a commit holds. The store owns the file.
package floor
