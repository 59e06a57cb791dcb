// Package lab tests a site as a lab uses it for days: the controller's whole program with its
// listeners, its configuration file and its store, twenty nodes that have the real agent's exchange,
// certificates and lease while their programs are timers, and users and operators who type the
// documents' commands. It holds tests and their harness only.
//
// All of it is in a bubble of testing/synctest, so that two weeks take minutes. What commands
// print is compared with each other, with the metrics, and with what truly ran on the nodes.
package lab
