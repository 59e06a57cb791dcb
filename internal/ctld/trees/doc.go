// Package trees keeps the directories that users have brought along for their
// jobs: for each user the chunks of their trees, and which make a tree. Users
// share nothing, so that nobody gets at a content by naming its sum. What is
// bounded, and what no job needs any more, goes by what the site says.
package trees
