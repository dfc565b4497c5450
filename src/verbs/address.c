// SPDX-License-Identifier: BSD-2-Clause
/* The address of an adapter's device, and the check of a peer's address. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/netaddr.h"
#include "core/base/settings.h"
#include "shared/fd.h"
#include "verbs/device.h"

/* Reads the first line of a small file. */
static bool line_read(const char *path, char *line_out, size_t size)
{
	ssize_t len = -1;
	int fd = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC));

	if (fd >= 0) {
		len = read(fd, line_out, size - 1);
		close(fd);
	}
	if (len <= 0)
		return false;
	line_out[len] = '\0';
	line_out[strcspn(line_out, "\n")] = '\0';
	return line_out[0] != '\0';
}

/* Finds the netdev whose hardware address the GID of an iWARP device begins with. */
static bool netdev_by_gid(const char *gid, char *netdev_out, size_t size)
{
	char path[300], mac[32], packed[16];
	struct dirent *item;
	bool is_found = false;
	DIR *dir = opendir("/sys/class/net");

	while (dir && !is_found && (item = readdir(dir))) {
		if (item->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/net/%s/address", item->d_name);
		if (!line_read(path, mac, sizeof(mac)) || strlen(mac) != 17)
			continue;
		/* aa:bb:cc:dd:ee:ff is aabb:ccdd:eeff at the beginning of a GID */
		snprintf(packed, sizeof(packed), "%.2s%.2s:%.2s%.2s:%.2s%.2s", mac, mac + 3,
			 mac + 6, mac + 9, mac + 12, mac + 15);
		is_found = !strncmp(gid, packed, 14);
		if (is_found)
			snprintf(netdev_out, size, "%.*s", IFNAMSIZ - 1, item->d_name);
	}
	if (dir)
		closedir(dir);
	return is_found;
}

/* Finds the netdev of a port of the RDMA device with that name. */
static bool netdev_of_rdma(const char *device, uint32_t port, char *netdev_out, size_t size)
{
	char path[256], gid[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", device,
		 port);
	if (line_read(path, netdev_out, size))
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gids/0", device, port);
	return line_read(path, gid, sizeof(gid)) && netdev_by_gid(gid, netdev_out, size);
}

static bool is_broadcast(const union core_sockaddr *address)
{
	union core_sockaddr copy = *address;
	bool is_one;
	int fd = opendat_fd_move(socket(address->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return false;
	if (copy.sa.sa_family == AF_INET)
		copy.in.sin_port = htons(9);
	else
		copy.in6.sin6_port = htons(9);
	is_one = core_address_is_broadcast(fd, &copy);
	close(fd);
	return is_one;
}

int vrb_address_check(const union core_sockaddr *address)
{
	if (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	return core_address_is_unusable(address) || is_broadcast(address) ? -EADDRNOTAVAIL : 0;
}

int vrb_address_of_device(const char *device, uint32_t port, union core_sockaddr *address_out)
{
	char netdev[CORE_DEVICE_MAX];
	int rc = core_address_parse(device, address_out);

	if (rc != -EINVAL)
		return rc;
	if (!strchr(device, '/') && netdev_of_rdma(device, port ? port : 1, netdev, sizeof(netdev)))
		return core_address_of_netdev(netdev, address_out);
	return core_address_of_netdev(device, address_out);
}
