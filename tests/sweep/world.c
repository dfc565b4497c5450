// SPDX-License-Identifier: BSD-2-Clause
/* What the steps of a scenario find: settings, files, a network, and the consumer's memory. */
#include "step.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned char *step_memory[SIDES];

/* --- a registry file --- */

static const char conf_text[] =
	"soft-lo u1.2 threadsafe default libdat-soft.so.1 opendat.1 \"lo\" \"\"\n"
	"soft-lo u1.2 nonthreadsafe default libdat-soft.so.1 opendat.1 \"lo\" \"\"\n";
static char conf_path[40];

static void conf_prepare(void)
{
	int fd = memfd_create("dat.conf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, conf_text, strlen(conf_text)) != (ssize_t)strlen(conf_text))
		abort();
	snprintf(conf_path, sizeof(conf_path), "/proc/self/fd/%d", fd);
}

/* --- a directory and a network --- */

static char dir_path[] = "/tmp/opendat-sweep-XXXXXX";
char sweep_dir[64]; /* the folder of this user there */

void scenario_clean(void)
{
	DIR *dir = opendir(sweep_dir);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

static void remove_dir(void)
{
	scenario_clean();
	(void)rmdir(sweep_dir);
	(void)rmdir(dir_path);
}

static void dir_prepare(void)
{
	if (!mkdtemp(dir_path))
		abort();
	snprintf(sweep_dir, sizeof(sweep_dir), "%s/opendat-%u", dir_path, (unsigned)geteuid());
	if (mkdir(sweep_dir, 0700) < 0)
		abort();
	atexit(remove_dir);
}

/* An interface whose address may be named in a directory. */
static bool enter_network(void)
{
	return unshare(CLONE_NEWNET) == 0 &&
	       system("{ ip link set lo up && "
		      "ip link add " SWEEP_NETDEV " type veth peer name other && "
		      "ip addr add 10.77.0.1/24 dev " SWEEP_NETDEV " && "
		      "ip link set " SWEEP_NETDEV
		      " up && ip link set other up; } 2>/dev/null") == 0;
}

bool scenario_is_possible(const struct sweep_scenario *scenario)
{
	static enum { UNKNOWN, ENTERED, FORBIDDEN } network;

	if (scenario->has_dir && network == UNKNOWN)
		network = enter_network() ? ENTERED : FORBIDDEN;
	return !scenario->has_dir || network == ENTERED;
}

void scenario_environment(const struct sweep_scenario *scenario)
{
	setenv("DAT_COPY", scenario->copy, 1);
	setenv("DAT_TRANSPORT", scenario->transport, 1);
	if (scenario->has_conf)
		setenv("DAT_OVERRIDE", conf_path, 1);
	if (scenario->has_dir)
		setenv("DAT_SOCKET_DIR", dir_path, 1);
}

/* --- all of it --- */

void scenario_prepare(void)
{
	conf_prepare();
	dir_prepare();
	for (int side = A; side < SIDES; side++) {
		int fd = memfd_create("sweep", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		if (fd < 0 || ftruncate(fd, SWEEP_LEN) ||
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
			abort();
		step_memory[side] =
			mmap(NULL, SWEEP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (step_memory[side] == MAP_FAILED)
			abort();
	}
}
