package oci

// What tests outside of the package have to reach.
var FillSeccomp = fillSeccomp
