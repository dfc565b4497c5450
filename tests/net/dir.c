// SPDX-License-Identifier: BSD-2-Clause
/* The directory that the hosts share (dir.h). */
#include "dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char dir_folder[] = "/tmp/opendat-dir-XXXXXX";
char dir_shared[64];
char dir_own[96];
char dir_place[64];

/* The name of a service point of a host; the test writes it on its own. */
const char *dir_file(unsigned index, DAT_CONN_QUAL qual)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/opendat.1-10.9.0.%u-%llx", dir_own, index + 1,
		 (unsigned long long)qual);
	return path;
}

bool dir_share_with(uid_t user)
{
	char command[128];

	if (user)
		return chown(dir_shared, 0, user) == 0 && chmod(dir_shared, 01777) == 0;
	/* without the folders of others */
	snprintf(command, sizeof(command), "find %s -mindepth 1 -delete", dir_shared);
	return system(command) == 0 && chmod(dir_shared, 0755) == 0;
}

bool dir_has(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

bool dir_is_empty(const char *path)
{
	char command[128];

	snprintf(command, sizeof(command), "test -z \"$(ls -A %s)\"", path);
	return system(command) == 0;
}

void dir_run(unsigned count, unsigned exchanges, net_fn fn)
{
	struct net net;

	net_start(&net, count, NET_IPV4, fn);
	for (unsigned i = 0; i < exchanges; i++)
		net_pass_on(&net);
	net_join(&net);
	assert_true(dir_is_empty(dir_own));
}

void dir_expect_unreachable(const struct net_host *host, struct dt_ia *ia, DAT_CONN_QUAL qual)
{
	struct sockaddr_storage address;
	struct dt_ep ep;

	dt_ep_create(ia, ia->pz, NULL, &ep);
	net_address(host->family, FIRST, &address);
	dt_ok(dat_ep_connect(ep.ep, (DAT_IA_ADDRESS_PTR)&address, qual, DT_WAIT_US, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_UNREACHABLE);
	dt_ep_free(&ep);
}

void dir_listen(struct dt_ia *ia, DAT_CONN_QUAL qual, struct dt_listener *listener)
{
	*listener = (struct dt_listener){.qual = qual};
	listener->evd = dt_evd_create(ia, 8, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create(ia->ia, qual, listener->evd, DAT_PSP_CONSUMER_FLAG, &listener->psp));
}

int dir_make(void **state)
{
	(void)state;
	if (!mkdtemp(dir_folder))
		return -1;
	snprintf(dir_shared, sizeof(dir_shared), "%s/shared", dir_folder);
	snprintf(dir_own, sizeof(dir_own), "%s/opendat-%u", dir_shared, (unsigned)geteuid());
	snprintf(dir_place, sizeof(dir_place), "%s/place", dir_folder);
	return mkdir(dir_shared, 0755) || mkdir(dir_place, 0755) || chmod(dir_folder, 0755) ||
	       chmod(dir_shared, 0755);
}

int dir_remove(void **state)
{
	(void)state;
	(void)rmdir(dir_own);
	return rmdir(dir_shared) || rmdir(dir_place) || rmdir(dir_folder);
}
