#ifndef GBATCH_CLONE_H
#define GBATCH_CLONE_H

// gbatch_namespaces makes a user namespace that belongs to the user owner, with
// the id maps, and where net is not NULL a network namespace that belongs to
// it. It returns NULL and their files, or what failed with errno in *code.
const char *gbatch_namespaces(unsigned owner, const char *uids, const char *gids, int *user, int *net, int *code);

#endif
