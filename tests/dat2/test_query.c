// SPDX-License-Identifier: BSD-2-Clause
/* Queries of an adapter that is not open. */
#include <dirent.h>
#include <ifaddrs.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dat2/dat_ib_extensions.h>

#include "descriptors.h"
#include "dt.h"

#define ROUNDS 400
#define ONLY_SAFE "only-threadsafe"
#define WITH_MAC "with-mac"

static DAT_NAME_PTR adapter(void)
{
	return (DAT_NAME_PTR)(uintptr_t)dt_adapter();
}

static unsigned count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void expect_same_names(const DAT_NAMED_ATTR *a, const DAT_NAMED_ATTR *b, DAT_COUNT count)
{
	for (DAT_COUNT i = 0; i < count; i++) {
		assert_string_equal(a[i].name, b[i].name);
		assert_string_equal(a[i].value, b[i].value);
	}
}

/* Everything but the pointers, whose targets are compared. */
static void expect_same(DAT_IA_ATTR *ia, DAT_PROVIDER_ATTR *provider, const struct dt_ia *open)
{
	DAT_IA_ATTR other = open->attr;
	DAT_PROVIDER_ATTR rest;

	expect_same_names(ia->transport_attr, other.transport_attr, other.num_transport_attr);
	assert_memory_equal(ia->ia_address_ptr, other.ia_address_ptr, sizeof(struct sockaddr_in));
	other.transport_attr = ia->transport_attr;
	other.vendor_attr = ia->vendor_attr;
	other.ia_address_ptr = ia->ia_address_ptr;
	assert_memory_equal(ia, &other, sizeof(other));
	memcpy((void *)&rest, &open->provider, sizeof(rest)); /* a member is declared const */
	assert_int_equal(provider->num_provider_specific_attr, rest.num_provider_specific_attr);
	expect_same_names(provider->provider_specific_attr, rest.provider_specific_attr,
			  rest.num_provider_specific_attr);
	rest.provider_specific_attr = provider->provider_specific_attr;
	assert_memory_equal(provider, &rest, sizeof(rest));
}

static DAT_HANDLE query(DAT_IA_ATTR *ia, DAT_PROVIDER_ATTR *provider)
{
	DAT_HANDLE handle = DAT_HANDLE_NULL;

	memset(ia, 0, sizeof(*ia));
	memset((void *)provider, 0, sizeof(*provider));
	dt_ok(dat_ib_open_query(adapter(), &handle, DAT_IA_FIELD_ALL, ia, DAT_PROVIDER_FIELD_ALL,
				provider));
	assert_non_null(handle);
	return handle;
}

/* D2-QRY-01 D2-QRY-08 D2-QRY-11: before it is open, and while it is open */
static void open_query__adapter__as_an_open_one(void **state)
{
	DAT_PROVIDER_ATTR provider, again;
	DAT_IA_ATTR attr, attr_again;
	DAT_HANDLE first, second;
	struct dt_ia ia;

	(void)state;
	first = query(&attr, &provider);
	dt_ia_open(&ia);
	expect_same(&attr, &provider, &ia);
	second = query(&attr_again, &again);
	expect_same(&attr_again, &again, &ia);
	dt_ok(dat_ib_close_query(second));
	dt_no_event(ia.async);
	expect_same(&attr, &provider, &ia);
	dt_ia_close(&ia);
	assert_string_equal(provider.provider_specific_attr[0].value, "OPENDAT");
	dt_ok(dat_ib_close_query(first));
}

/* D2-QRY-02 */
static void open_query__no_open_adapter__starts_no_thread(void **state)
{
	DAT_PROVIDER_ATTR provider;
	DAT_HANDLE handles[20];
	unsigned threads = count_threads();
	DAT_IA_ATTR attr;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(handles); i++)
		handles[i] = query(&attr, &provider);
	assert_int_equal(count_threads(), threads);
	for (size_t i = 0; i < COUNT_OF(handles); i++)
		dt_ok(dat_ib_close_query(handles[i]));
}

#define refuses_ia(call) dt_fails_with(call, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)

/* D2-QRY-03 D2-QRY-09 */
static void query_handle__other_calls_or_a_second_close__refused(void **state)
{
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;
	DAT_HANDLE handle;
	struct dt_ia ia;

	(void)state;
	handle = query(&attr, &provider);
	refuses_ia(dat_ia_query(handle, NULL, 0, NULL, 0, NULL));
	refuses_ia(dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG));
	refuses_ia(dat_pz_create(handle, &pz));
	refuses_ia(dat_evd_create(handle, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	dt_fails(dat_pz_free(handle), DAT_INVALID_HANDLE);
	dt_fails(dat_query_counters(handle, 0, NULL, 0), DAT_INVALID_HANDLE);
	dt_ok(dat_ib_close_query(handle));
	refuses_ia(dat_ib_close_query(handle));
	refuses_ia(dat_ib_close_query(DAT_HANDLE_NULL));
	dt_ia_open(&ia);
	refuses_ia(dat_ib_close_query(ia.ia));
	refuses_ia(dat_ib_close_query(ia.pz));
	dt_ia_close(&ia);
}

/* D2-QRY-04 D2-QRY-06 D2-QRY-07 */
static void open_query__arguments__checked(void **state)
{
	const DAT_NAME_PTR none = (DAT_NAME_PTR)(uintptr_t) "no-such-name";
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	DAT_HANDLE handle;

	(void)state;
	dt_fails_with(dat_ib_open_query(none, &handle, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	dt_fails_with(dat_ib_open_query(NULL, &handle, 0, NULL, 0, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG1);
	dt_fails_with(dat_ib_open_query(adapter(), NULL, 0, NULL, 0, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(dat_ib_open_query(adapter(), &handle, 1, NULL, 0, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	dt_fails_with(dat_ib_open_query(adapter(), &handle, 0, NULL, 1, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	assert_ptr_equal(handle, DAT_HANDLE_NULL);
	dt_ok(dat_ib_open_query(adapter(), &handle, 0, NULL, 0, NULL));
	dt_ok(dat_ib_close_query(handle));
	dt_ok(dat_ib_open_query(adapter(), &handle, 1, &attr, 0, NULL));
	dt_ok(dat_ib_close_query(handle));
	dt_ok(dat_ib_open_query(adapter(), &handle, 0, NULL, 1, &provider));
	dt_ok(dat_ib_close_query(handle));
}

/* D2-QRY-05: soft-lo of this dat.conf is for nonthreadsafe opens only */
static void open_query__entry_of_either_thread_safety__found(void **state)
{
	const DAT_NAME_PTR safe = (DAT_NAME_PTR)(uintptr_t)ONLY_SAFE;
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	DAT_HANDLE handle;

	(void)state;
	handle = query(&attr, &provider);
	if (strcmp(dt_adapter(), "soft-lo") == 0)
		assert_int_equal(provider.is_thread_safe, DAT_FALSE);
	dt_ok(dat_ib_close_query(handle));
	dt_ok(dat_ib_open_query(safe, &handle, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	assert_int_equal(provider.is_thread_safe, DAT_TRUE);
	dt_ok(dat_ib_close_query(handle));
}

/* D2-QRY-10 */
static void open_query__many_rounds__leave_nothing(void **state)
{
	DAT_PROVIDER_ATTR provider;
	unsigned descriptors = 0, threads = 0;
	DAT_IA_ATTR attr;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		dt_ok(dat_ib_close_query(query(&attr, &provider)));
		if (i == 0) {
			descriptors = count_descriptors();
			threads = count_threads();
		}
	}
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_threads(), threads);
}

static const char *guid_of(const DAT_PROVIDER_ATTR *provider)
{
	for (DAT_COUNT i = 0; i < provider->num_provider_specific_attr; i++)
		if (!strcmp(provider->provider_specific_attr[i].name, "DAT_IB_NODE_GUID"))
			return provider->provider_specific_attr[i].value;
	fail();
	return NULL;
}

static bool has_ipv4(const struct ifaddrs *list, const char *name)
{
	for (; list; list = list->ifa_next)
		if (list->ifa_addr && list->ifa_addr->sa_family == AF_INET &&
		    !strcmp(list->ifa_name, name))
			return true;
	return false;
}

/* What interface_with_mac expects. */
static char mac_guid[20] = "0000:0000:0000:0000";

/* An interface of this host that has a MAC address and an IPv4 address; else lo. */
static const char *interface_with_mac(void)
{
	static char name[32] = "lo";
	struct ifaddrs *list, *entry;

	if (getifaddrs(&list) < 0)
		return name;
	for (entry = list; entry; entry = entry->ifa_next) {
		const struct sockaddr_ll *link = (const void *)entry->ifa_addr;
		const unsigned char *mac;

		if (!link || link->sll_family != AF_PACKET || link->sll_halen != 6 ||
		    !has_ipv4(list, entry->ifa_name) || !strcmp(entry->ifa_name, "lo"))
			continue;
		mac = link->sll_addr;
		snprintf(name, sizeof(name), "%s", entry->ifa_name);
		snprintf(mac_guid, sizeof(mac_guid), "%02x%02x:%02xff:fe%02x:%02x%02x", mac[0] ^ 2,
			 mac[1], mac[2], mac[3], mac[4], mac[5]);
		break;
	}
	freeifaddrs(list);
	return name;
}

/* D2-ATTR-05 */
static void named_attributes__guid__from_the_mac_address(void **state)
{
	const DAT_NAME_PTR name = (DAT_NAME_PTR)(uintptr_t)WITH_MAC;
	DAT_PROVIDER_ATTR provider;
	DAT_HANDLE handles[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_ib_open_query(name, &handles[i], 0, NULL, DAT_PROVIDER_FIELD_ALL,
					&provider));
		assert_string_equal(guid_of(&provider), mac_guid);
	}
	for (int i = 0; i < 2; i++)
		dt_ok(dat_ib_close_query(handles[i]));
}

/* The registry reads it at the first call. */
static void write_conf(char *path)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	dprintf(fd,
		"soft-lo u2.0 nonthreadsafe default libdat-soft.so.1 opendat.1.0 \"lo\" \"\"\n"
		"%s u2.0 threadsafe default libdat-soft.so.1 opendat.1.0 \"lo\" \"\"\n"
		"%s u2.0 threadsafe default libdat-soft.so.1 opendat.1.0 \"%s\" \"\"\n",
		ONLY_SAFE, WITH_MAC, interface_with_mac());
	close(fd);
	setenv("DAT_OVERRIDE", path, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_query__no_open_adapter__starts_no_thread),
		cmocka_unit_test(open_query__adapter__as_an_open_one),
		cmocka_unit_test(query_handle__other_calls_or_a_second_close__refused),
		cmocka_unit_test(open_query__arguments__checked),
		cmocka_unit_test(open_query__entry_of_either_thread_safety__found),
		cmocka_unit_test(named_attributes__guid__from_the_mac_address),
		cmocka_unit_test(open_query__many_rounds__leave_nothing),
	};
	char path[] = "/tmp/dat2-query-XXXXXX";
	int failed;

	write_conf(path);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
