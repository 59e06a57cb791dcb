// Package rules has the configuration in force and changes it, as a whole or not
// at all: by a reload of the file, or by projects that gadm makes.
package rules
