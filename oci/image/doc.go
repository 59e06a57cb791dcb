// Package image keeps container images of one node: it pulls them from
// registries or local files, unpacks each layer into a directory of its own
// and hands these directories out as the lower layers of an overlay mount. It
// does not mount and runs nothing.
//
// On disk, under Config.Dir (mode 0700, one process at a time):
//
//	layers/<diffID>/fs      the unpacked layer; layer.json beside it is written last
//	layers/<id>-dirs/fs     attributes of directories that a layer uses but does not hold
//	blobs/<digest>          indexes, manifests and configs, as the registry sent them
//	images/<digest>.json    which blobs and layers make an image, and who may use it;
//	                        its modification time is the image's last use
//	holds/                  one file for each Hold
//	tmp/                    what is being added or removed; swept by Open
//	workers/                a directory for each worker, where it unpacks; swept by Open
//
// All become visible by rename, so a crash leaves work in tmp and nothing half
// done elsewhere. Everything is addressed by digest and verified when it
// comes in: the compressed bytes, the unpacked bytes, manifest and config.
//
// Registries, references and images are a stranger's. What reads them is a
// worker: a process of its own without rights, network or files, which asks
// the store for each connection and for each part of the disk (sandbox.go,
// worker.go, workers.go, process.go, wire.go). Config.Dial decides where pulls may lead.
// Nothing outside a layer's directory is touched when it is unpacked, device
// nodes are left out, and overlay's own attributes are dropped. Set-user-id
// files are kept: mount nodev, and nosuid where the site wants it.
//
// Who may use what: content is shared between users, access is not. A login
// gets what a registry proves that it may have (proof.go). This is remembered,
// so a pinned image starts without network; it is not forgotten if the
// registry withdraws access later.
//
// No image and no registry can make a pull fail by the node's fault: see Fault.
package image
