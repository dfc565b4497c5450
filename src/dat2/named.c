// SPDX-License-Identifier: BSD-2-Clause
/* The named attributes of an instance (rows D2-ATTR): pairs of strings that programs look for. */
#include "core/base/instance.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dat2/front.h"

#define NAMED_MAX 24 /* with those of DAT 1.2 */
#define NAMED_MTU 4096

/* Lives as long as the instance (D2-IA-19). */
struct named {
	DAT_NAMED_ATTR attr[NAMED_MAX];
	DAT_COUNT count;
	char guid[20], gid[40], mtu[12], port[12];
};

static void add(struct named *named, const char *name, const char *value)
{
	if (named->count < NAMED_MAX)
		named->attr[named->count++] = (DAT_NAMED_ATTR){name, value};
}

static const char *truth(bool is)
{
	return is ? "TRUE" : "FALSE";
}

/* Groups of four hexadecimal digits with colons. */
static void put_groups(char *text, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i += 2)
		text += sprintf(text, "%s%02x%02x", i ? ":" : "", bytes[i], bytes[i + 1]);
}

/* An address of a network interface as a GID; IPv4 mapped into IPv6. */
static void gid_of(const union core_sockaddr *address, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (address->sa.sa_family == AF_INET6) {
		memcpy(gid, &address->in6.sin6_addr, 16);
	} else {
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, &address->in.sin_addr, 4);
	}
}

static void fill(const struct core_ia *ia, struct named *named)
{
	const struct core_link *link = &ia->link;
	uint8_t gid[16];

	if (link->has_gid)
		memcpy(gid, link->gid, sizeof(gid));
	else
		gid_of(&ia->address, gid);
	put_groups(named->guid, link->guid, sizeof(link->guid));
	put_groups(named->gid, gid, sizeof(gid));
	snprintf(named->mtu, sizeof(named->mtu), "%u", link->mtu ? link->mtu : NAMED_MTU);
	snprintf(named->port, sizeof(named->port), "%u", link->port ? link->port : 1);
	add(named, "DAT_IB_PROVIDER_NAME", "OPENDAT");
	add(named, "DAT_IB_DEVICE_NAME", link->device ? link->device : ia->device);
	add(named, "DAT_IB_CONNECTIVITY_MODE", "DIRECT");
	add(named, "DAT_IB_RDMA_READ", "TRUE");
	add(named, "DAT_IB_NODE_GUID", named->guid);
	add(named, "DAT_IB_GID", named->gid);
	add(named, "DAT_IB_TRANSPORT_MTU", named->mtu);
	add(named, "DAT_IB_PORT_STATUS", link->is_down ? "DOWN" : "ACTIVE");
	add(named, "DAT_IB_PORT_NUMBER", named->port);
	add(named, "DAT_EXTENSION_INTERFACE", "TRUE");
	add(named, "DAT_IB_FETCH_AND_ADD", truth(link->has_atomics));
	add(named, "DAT_IB_CMP_AND_SWAP", truth(link->has_atomics));
	add(named, "DAT_IB_IMMED_DATA", truth(link->has_immediate));
	add(named, "DAT_COUNTERS", "TRUE");
	for (DAT_COUNT i = 0; i < ia->provider_attr.num_provider_specific_attr; i++)
		add(named, ia->provider_attr.provider_specific_attr[i].name,
		    ia->provider_attr.provider_specific_attr[i].value);
}

bool dat2_instance_open(struct core_ia *ia)
{
	struct named *named = calloc(1, sizeof(*named));

	if (!named)
		return false;
	fill(ia, named);
	ia->front_data = named;
	return true;
}

void dat2_instance_close(struct core_ia *ia)
{
	free(ia->front_data);
}

DAT_NAMED_ATTR *dat2_named(struct core_ia *ia, DAT_COUNT *count_out)
{
	struct named *named = ia->front_data;

	*count_out = named->count;
	return named->attr;
}
