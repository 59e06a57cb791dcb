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
//	tmp/                    what is being unpacked or removed; swept by Open
//
// All become visible by rename, so a crash leaves work in tmp and nothing half
// done elsewhere. Everything is addressed by digest and verified when it
// comes in: the compressed bytes, the unpacked bytes, manifest and config.
//
// Layers are untrusted. Nothing outside a layer's directory is touched when it
// is unpacked, device nodes are left out, and overlay's own attributes are
// dropped. Set-user-id files are kept: mount nodev, and nosuid where the site
// wants it.
//
// Who may use what: content is shared between users, access is not. An image
// is handed to a caller only after a registry let that caller's credentials
// read its manifest, or after it let callers without credentials do so. This
// is remembered for pinned digests, so a pinned image starts without network;
// it is not forgotten if the registry withdraws access later. Someone who
// knows the digest of a layer counts as someone who may read it, as at a
// registry.
package image
