// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the adapters that need no configuration. Nothing is loaded here: a provider library counts
 * as installed when it is linked into the program, or its file is next to the registry's library or on
 * the dynamic loader's search path.
 */
#include "builtin.h"
#include "linked.h"
#include "log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/fd.h"
#include "shared/host.h"

#define SOFT_PREFIX "soft-"
#define OFA_PREFIX "ofa-v2-"
#define SOFT_LIBRARY "libdat-soft.so.1"
#define VERBS_PREFIX "verbs-"
#define VERBS_LIBRARY "libdat-verbs.so.1"
#define CHECK_PREFIX "check:"
#define CHECK_LIBRARY "libdat-check.so.1"
#define LOOPBACK "lo"

#define PORTS_MAX 255 /* of an RDMA device */

/* Interfaces beyond this number get no built-in adapter. */
#define NETDEVS_MAX 512

struct netdevs {
	char names[NETDEVS_MAX][IFNAMSIZ];
	int count;
};

static bool library_find(const char *library, char path_out[PATH_MAX]);
static void soft_netdevs_get(struct netdevs *netdevs_out);
static void netdev_of(const char *device, char netdev_out[IFNAMSIZ]);
static bool netdevs_has(char netdevs[][IFNAMSIZ], int count, const char *name);
static void device_netdevs_add(const char *sysfs, const char *device, int only_port,
			       char netdevs[][IFNAMSIZ], int *count, int max);

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool builtin_set(struct registry_builtin *builtin, const char *prefix, const char *data,
			const char *library)
{
	if (snprintf(builtin->name, sizeof(builtin->name), "%s%s", prefix, data) >=
	    (int)sizeof(builtin->name))
		return false;
	snprintf(builtin->data, sizeof(builtin->data), "%s", data);
	snprintf(builtin->library, sizeof(builtin->library), "%s", library);
	return true;
}

/* Adds an adapter, unless one of that name stands there. */
static void builtin_add(struct registry_builtin *list, int *count, const char *prefix,
			const char *netdev, const char *library)
{
	int i;

	if (*count == REGISTRY_BUILTIN_LISTED_MAX ||
	    !builtin_set(&list[*count], prefix, netdev, library))
		return;
	for (i = 0; i < *count; i++)
		if (strcmp(list[i].name, list[*count].name) == 0)
			return;
	(*count)++;
}

int registry_builtin_list(struct registry_builtin list_out[REGISTRY_BUILTIN_LISTED_MAX])
{
	struct netdevs *netdevs = malloc(sizeof(*netdevs));
	char soft[PATH_MAX], verbs[PATH_MAX];
	bool has_soft = library_find(SOFT_LIBRARY, soft);
	int count = 0, i;

	if (has_soft)
		builtin_add(list_out, &count, REGISTRY_SOFT_LISTED, LOOPBACK, soft);
	if (!netdevs)
		return count;
	if (library_find(VERBS_LIBRARY, verbs)) {
		netdevs->count = registry_builtin_rdma_netdevs("/sys", netdevs->names, NETDEVS_MAX);
		for (i = 0; i < netdevs->count; i++)
			builtin_add(list_out, &count, REGISTRY_VERBS_LISTED, netdevs->names[i],
				    verbs);
	}
	if (has_soft) {
		soft_netdevs_get(netdevs);
		for (i = 0; i < netdevs->count; i++)
			if (strcmp(netdevs->names[i], LOOPBACK) != 0)
				builtin_add(list_out, &count, REGISTRY_SOFT_LISTED,
					    netdevs->names[i], soft);
	}
	free(netdevs);
	return count;
}

static bool soft_find(const char *netdev, struct registry_builtin *builtin_out)
{
	struct netdevs *netdevs;
	char library[PATH_MAX];
	bool is_found;

	if (!library_find(SOFT_LIBRARY, library))
		return false;
	if (strcmp(netdev, LOOPBACK) == 0)
		return builtin_set(builtin_out, SOFT_PREFIX, netdev, library);
	netdevs = malloc(sizeof(*netdevs));
	if (!netdevs)
		return false;
	soft_netdevs_get(netdevs);
	is_found = netdevs_has(netdevs->names, netdevs->count, netdev);
	free(netdevs);
	return is_found && builtin_set(builtin_out, SOFT_PREFIX, netdev, library);
}

static bool verbs_find(const char *netdev, struct registry_builtin *builtin_out)
{
	struct netdevs *netdevs;
	char library[PATH_MAX];
	bool is_found;

	if (!library_find(VERBS_LIBRARY, library))
		return false;
	netdevs = malloc(sizeof(*netdevs));
	if (!netdevs)
		return false;
	netdevs->count = registry_builtin_rdma_netdevs("/sys", netdevs->names, NETDEVS_MAX);
	is_found = netdevs_has(netdevs->names, netdevs->count, netdev);
	free(netdevs);
	return is_found && builtin_set(builtin_out, VERBS_PREFIX, netdev, library);
}

/* Finds the adapter of the port of an RDMA device: `mlx5_0-1`, also with one of the letters s, u and
 * m behind it, which stand for ways to connect elsewhere (D2-CONF-18 D2-CONF-19). */
static bool port_find(const char *text, struct registry_builtin *builtin_out)
{
	const char *dash = strrchr(text, '-');
	char path[PATH_MAX], netdev[1][IFNAMSIZ], *end;
	int count = 0, len;
	long port;

	if (!dash || dash[1] < '1' || dash[1] > '9' || strchr(text, '/'))
		return false;
	port = strtol(dash + 1, &end, 10);
	if (*end && (!strchr("sum", *end) || end[1]))
		return false;
	len = snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s", (int)(dash - text), text);
	if (len < (int)sizeof(path) && port <= PORTS_MAX)
		device_netdevs_add("/sys", path, (int)port, netdev, &count, 1);
	return count && verbs_find(netdev[0], builtin_out);
}

/* A name of DAT 2.0 as others have it: of an interface or of the port of a device. The words for
 * RoCE and for ways to connect change nothing. */
static bool ofa_find(const char *text, struct registry_builtin *builtin_out)
{
	static const char *const words[] = {"cma-roe-", "scm-roe-"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (begins(text, words[i]))
			text += strlen(words[i]);
	return verbs_find(text, builtin_out) || soft_find(text, builtin_out) ||
	       port_find(text, builtin_out);
}

bool registry_builtin_is_check(const char *name)
{
	return begins(name, CHECK_PREFIX);
}

static bool check_find(const char *below, struct registry_builtin *builtin_out)
{
	char library[PATH_MAX];

	return *below && library_find(CHECK_LIBRARY, library) &&
	       builtin_set(builtin_out, CHECK_PREFIX, below, library);
}

bool registry_builtin_find(const char *name, struct registry_builtin *builtin_out)
{
	if (registry_builtin_is_check(name))
		return check_find(name + strlen(CHECK_PREFIX), builtin_out);
	if (begins(name, SOFT_PREFIX))
		return soft_find(name + strlen(SOFT_PREFIX), builtin_out);
	if (begins(name, VERBS_PREFIX))
		return verbs_find(name + strlen(VERBS_PREFIX), builtin_out);
	return DAT_VERSION_MAJOR == 2 && begins(name, OFA_PREFIX) &&
	       ofa_find(name + strlen(OFA_PREFIX), builtin_out);
}

/* Is it an RDMA device, or does one belong to the interface? */
static bool rdma_has(const char *device, const char *netdev, struct netdevs *netdevs)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device);
	if (access(path, F_OK) == 0)
		return true;
	netdevs->count = registry_builtin_rdma_netdevs("/sys", netdevs->names, NETDEVS_MAX);
	return netdevs_has(netdevs->names, netdevs->count, netdev);
}

bool registry_builtin_library_for(const char *device, char library_out[PATH_MAX])
{
	struct netdevs *netdevs;
	char netdev[IFNAMSIZ];
	bool is_found = false;

	if (*device == '\0' || *device == '.' || strchr(device, '/'))
		return false;
	netdevs = malloc(sizeof(*netdevs));
	if (!netdevs)
		return false;
	netdev_of(device, netdev);
	if (rdma_has(device, netdev, netdevs))
		is_found = library_find(VERBS_LIBRARY, library_out);
	if (!is_found) {
		soft_netdevs_get(netdevs);
		is_found = netdevs_has(netdevs->names, netdevs->count, netdev) &&
			   library_find(SOFT_LIBRARY, library_out);
	}
	free(netdevs);
	return is_found;
}

void registry_builtin_explain(const char *name)
{
	bool is_soft = strncmp(name, SOFT_PREFIX, strlen(SOFT_PREFIX)) == 0;
	const char *prefix = is_soft ? SOFT_PREFIX : VERBS_PREFIX;
	const char *netdev = name + strlen(prefix);
	char library[PATH_MAX];

	if (!registry_log_has(REGISTRY_LOG_ERROR) || strncmp(name, prefix, strlen(prefix)) != 0)
		return;
	if (!library_find(is_soft ? SOFT_LIBRARY : VERBS_LIBRARY, library))
		registry_log(REGISTRY_LOG_ERROR, "%s: %s is not installed", name,
			     is_soft ? SOFT_LIBRARY : VERBS_LIBRARY);
	else if (if_nametoindex(netdev) == 0)
		registry_log(REGISTRY_LOG_ERROR, "%s: interface %s: %s", name, netdev,
			     strerror(errno));
	else
		registry_log(REGISTRY_LOG_ERROR, "%s: interface %s %s", name, netdev,
			     is_soft ? "is down or has no address" : "has no RDMA device");
}

/* ---- installed libraries ---- */

/* Any object of the registry's library, for dladdr to find the file of the library. */
static const char library_anchor;

static bool library_is_in(const char *directory, size_t len, const char *library,
			  char path_out[PATH_MAX])
{
	int written = snprintf(path_out, PATH_MAX, "%.*s/%s", (int)len, directory, library);

	return written > 0 && written < PATH_MAX && access(path_out, R_OK) == 0;
}

/* Searches the directories that the dynamic loader searches for a dependency of libdat.so.1. */
#ifdef RTLD_DI_SERINFO
static bool library_search(const char *self, const char *library, char path_out[PATH_MAX])
{
	void *handle = dlopen(self, RTLD_LAZY | RTLD_NOLOAD);
	Dl_serinfo size, *info = NULL;
	bool is_found = false;
	unsigned int i;

	if (!handle)
		return false;
	if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0)
		info = malloc(size.dls_size);
	if (!info)
		goto close_handle;
	*info = size;
	if (dlinfo(handle, RTLD_DI_SERINFOSIZE, info) != 0 ||
	    dlinfo(handle, RTLD_DI_SERINFO, info) != 0)
		goto close_handle;
	for (i = 0; i < info->dls_cnt && !is_found; i++) {
		const char *directory = info->dls_serpath[i].dls_name;

		is_found = library_is_in(directory, strlen(directory), library, path_out);
	}
close_handle:
	free(info);
	dlclose(handle);
	return is_found;
}
#else
/* The C library does not list them (musl): only those of the environment are known. */
static bool library_search(const char *self, const char *library, char path_out[PATH_MAX])
{
	const char *directory = secure_getenv("LD_LIBRARY_PATH");
	size_t len;

	(void)self;
	while (directory && *directory) {
		len = strcspn(directory, ":\n");
		if (len > 0 && library_is_in(directory, len, library, path_out))
			return true;
		directory += len + (directory[len] != '\0');
	}
	return false;
}
#endif

static bool library_find(const char *library, char path_out[PATH_MAX])
{
	const char *slash;
	Dl_info self;

	if (registry_linked_find(library)) {
		snprintf(path_out, PATH_MAX, "%s", library);
		return true;
	}
	if (!dladdr(&library_anchor, &self) || !self.dli_fname)
		return false;
	slash = strrchr(self.dli_fname, '/');
	if (slash &&
	    library_is_in(self.dli_fname, (size_t)(slash - self.dli_fname), library, path_out))
		return true;
	/* libdat2.so.2 has a folder of its own below that of the providers (D2-PKG-02) */
	slash = DAT_VERSION_MAJOR == 2 && slash
			? memrchr(self.dli_fname, '/', (size_t)(slash - self.dli_fname))
			: NULL;
	if (slash &&
	    library_is_in(self.dli_fname, (size_t)(slash - self.dli_fname), library, path_out))
		return true;
	return library_search(self.dli_fname, library, path_out);
}

/* ---- network interfaces ---- */

static bool netdevs_has(char netdevs[][IFNAMSIZ], int count, const char *name)
{
	int i;

	for (i = 0; i < count; i++)
		if (strcmp(netdevs[i], name) == 0)
			return true;
	return false;
}

static void netdevs_add(char netdevs[][IFNAMSIZ], int *count, int max, const char *name)
{
	size_t len = strlen(name);

	if (*count == max || len == 0 || len >= IFNAMSIZ || netdevs_has(netdevs, *count, name))
		return;
	memcpy(netdevs[*count], name, len + 1);
	(*count)++;
}

static void soft_netdevs_get(struct netdevs *netdevs_out)
{
	struct ifaddrs *list, *item;

	netdevs_out->count = 0;
	if (getifaddrs(&list) != 0)
		return;
	for (item = list; item; item = item->ifa_next) {
		if (!item->ifa_addr || !(item->ifa_flags & IFF_UP))
			continue;
		if (item->ifa_addr->sa_family == AF_INET || item->ifa_addr->sa_family == AF_INET6)
			netdevs_add(netdevs_out->names, &netdevs_out->count, NETDEVS_MAX,
				    item->ifa_name);
	}
	freeifaddrs(list);
}

/* Is the device the text of that address, which may have an interface after it? */
static bool address_is(const struct sockaddr *address, const char *device)
{
	char text[INET6_ADDRSTRLEN];
	const void *bytes;

	if (!address)
		return false;
	if (address->sa_family == AF_INET)
		bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
	else if (address->sa_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	else
		return false;
	return inet_ntop(address->sa_family, bytes, text, sizeof(text)) &&
	       strncmp(text, device, strlen(text)) == 0 &&
	       (device[strlen(text)] == '\0' || device[strlen(text)] == '%');
}

/* The interface that has the address, or an address of the host of that name, or else the name
 * itself. Empty: it is too long for one. */
static void netdev_of(const char *device, char netdev_out[IFNAMSIZ])
{
	struct ifaddrs *list = NULL, *item;
	struct sockaddr_in6 unused;
	const char *name = device;

	if (getifaddrs(&list) != 0)
		list = NULL;
	for (item = list; item && name == device; item = item->ifa_next) {
		const char *percent = strchr(device, '%');

		if (address_is(item->ifa_addr, device) &&
		    (!percent || strcmp(percent + 1, item->ifa_name) == 0))
			name = item->ifa_name;
	}
	if ((name != device || if_nametoindex(name) != 0 ||
	     !opendat_host_find(name, netdev_out, &unused)) &&
	    snprintf(netdev_out, IFNAMSIZ, "%s", name) >= IFNAMSIZ)
		netdev_out[0] = '\0';
	if (list)
		freeifaddrs(list);
}

/* ---- RDMA devices ---- */

#define WORD_MAX 64 /* with the final null: a GID takes 40 */

/* Reads the single word in a sysfs file. */
static bool sysfs_word_read(const char *path, char word_out[WORD_MAX])
{
	char text[WORD_MAX];
	ssize_t len;
	int fd;

	fd = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return snprintf(word_out, WORD_MAX, "%s", text) < WORD_MAX;
}

/* The GID of an iWARP device starts with its interface's hardware address, aabb:ccdd:eeff. */
static bool gid_is_of(const char *gid, const char *mac)
{
	char packed[15];

	if (strlen(mac) != strlen("aa:bb:cc:dd:ee:ff"))
		return false;
	snprintf(packed, sizeof(packed), "%.2s%.2s:%.2s%.2s:%.2s%.2s", mac, mac + 3, mac + 6,
		 mac + 9, mac + 12, mac + 15);
	return strncmp(gid, packed, sizeof(packed) - 1) == 0;
}

/* Adds the interface whose hardware address is in the GID. */
static void gid_netdevs_add(const char *sysfs, const char *gid, char netdevs[][IFNAMSIZ],
			    int *count, int max)
{
	char path[PATH_MAX], mac[WORD_MAX];
	struct dirent *item;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/net", sysfs);
	dir = opendir(path);
	if (!dir)
		return;
	while ((item = readdir(dir)) != NULL) {
		int len = snprintf(path, sizeof(path), "%s/class/net/%s/address", sysfs,
				   item->d_name);

		if (item->d_name[0] != '.' && len < (int)sizeof(path) &&
		    sysfs_word_read(path, mac) && gid_is_of(gid, mac))
			netdevs_add(netdevs, count, max, item->d_name);
	}
	closedir(dir);
}

/*
 * Adds the interfaces of an RDMA device, or of one port of it if `only_port` is not 0. A software
 * device may name its interface in `parent`; the others name it in their table of addresses, or the
 * address itself identifies it.
 */
static void device_netdevs_add(const char *sysfs, const char *device, int only_port,
			       char netdevs[][IFNAMSIZ], int *count, int max)
{
	char path[PATH_MAX], word[WORD_MAX];
	int port;

	if (snprintf(path, sizeof(path), "%s/parent", device) < (int)sizeof(path) &&
	    sysfs_word_read(path, word))
		netdevs_add(netdevs, count, max, word);
	for (port = only_port ? only_port : 1; !only_port || port == only_port; port++) {
		int len = snprintf(path, sizeof(path), "%s/ports/%d", device, port);

		if (len >= (int)sizeof(path) || access(path, F_OK) != 0)
			return;
		snprintf(path, sizeof(path), "%s/ports/%d/gid_attrs/ndevs/0", device, port);
		if (sysfs_word_read(path, word)) {
			netdevs_add(netdevs, count, max, word);
			continue;
		}
		snprintf(path, sizeof(path), "%s/ports/%d/gids/0", device, port);
		if (sysfs_word_read(path, word))
			gid_netdevs_add(sysfs, word, netdevs, count, max);
	}
}

/* Calls visit for each entry of a sysfs directory. */
static void directory_walk(const char *sysfs, const char *directory,
			   void (*visit)(const char *sysfs, const char *path, const char *name,
					 char netdevs[][IFNAMSIZ], int *count, int max),
			   char netdevs[][IFNAMSIZ], int *count, int max)
{
	char path[PATH_MAX], item_path[PATH_MAX];
	struct dirent *item;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", sysfs, directory);
	dir = opendir(path);
	if (!dir)
		return;
	while ((item = readdir(dir)) != NULL) {
		int len = snprintf(item_path, sizeof(item_path), "%s/%s", path, item->d_name);

		if (item->d_name[0] != '.' && len < (int)sizeof(item_path))
			visit(sysfs, item_path, item->d_name, netdevs, count, max);
	}
	closedir(dir);
}

static void device_visit(const char *sysfs, const char *path, const char *name,
			 char netdevs[][IFNAMSIZ], int *count, int max)
{
	(void)name;
	device_netdevs_add(sysfs, path, 0, netdevs, count, max);
}

/* Adds an interface whose hardware device is an RDMA device, too, such as IPoIB. */
static void netdev_visit(const char *sysfs, const char *path, const char *name,
			 char netdevs[][IFNAMSIZ], int *count, int max)
{
	char inner[PATH_MAX];

	(void)sysfs;
	if (snprintf(inner, sizeof(inner), "%s/device/infiniband", path) < (int)sizeof(inner) &&
	    access(inner, F_OK) == 0)
		netdevs_add(netdevs, count, max, name);
}

int registry_builtin_rdma_netdevs(const char *sysfs, char netdevs_out[][IFNAMSIZ], int max)
{
	int count = 0;

	directory_walk(sysfs, "class/infiniband", device_visit, netdevs_out, &count, max);
	directory_walk(sysfs, "class/net", netdev_visit, netdevs_out, &count, max);
	return count;
}
