// SPDX-License-Identifier: BSD-2-Clause
/* Hosts that are containers of one machine, with a directory for the setting socket_dir. */
#ifndef TESTS_NET_DIR_H
#define TESTS_NET_DIR_H

#include "net.h"

enum { FIRST, SECOND, HOSTS };

extern char dir_folder[];   /* temporary; contains the two others */
extern char dir_shared[64]; /* the directory that the hosts share */
extern char dir_own[96];    /* the folder of this user there */
extern char dir_place[64];  /* where a container may mount it */

/* For the group of tests. */
int dir_make(void **state);
int dir_remove(void **state);
/* Runs the function on that many hosts, with so many exchanges. They must leave no file. */
void dir_run(unsigned count, unsigned exchanges, net_fn fn);
/* The name of a service point of a host, as the pages document it. */
const char *dir_file(unsigned index, DAT_CONN_QUAL qual);
/* Lets all users write to the directory; 0: root alone again. False: we cannot be that user. */
bool dir_share_with(uid_t user);
bool dir_has(const char *path);
bool dir_is_empty(const char *path);
void dir_listen(struct dt_ia *ia, DAT_CONN_QUAL qual, struct dt_listener *listener);
/* Connects to the first host in vain. */
void dir_expect_unreachable(const struct net_host *host, struct dt_ia *ia, DAT_CONN_QUAL qual);

#endif
