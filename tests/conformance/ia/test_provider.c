// SPDX-License-Identifier: BSD-2-Clause
/* The entry points of the provider library, called by a program that loads it itself. */
#include <dlfcn.h>
#include <stdio.h>

#include "dt.h"

#include <dat/dat_registry.h>

struct library {
	void *handle;
	DAT_PROVIDER_INIT_FUNC init;
	DAT_PROVIDER_FINI_FUNC fini;
};

/* Converts a pointer of dlsym to a function pointer as C allows. */
static void *entry(struct library *library, const char *name)
{
	void *address = dlsym(library->handle, name);

	assert_non_null(address);
	return address;
}

static int setup(void **state)
{
	static struct library library;

	library.handle = dlopen("libdat-soft.so.1", RTLD_NOW);
	assert_non_null(library.handle);
	*(void **)&library.init = entry(&library, "dat_provider_init");
	*(void **)&library.fini = entry(&library, "dat_provider_fini");
	*state = &library;
	return 0;
}

static int teardown(void **state)
{
	struct library *library = *state;

	dlclose(library->handle);
	return 0;
}

static DAT_PROVIDER_INFO info_of(const char *name)
{
	DAT_PROVIDER_INFO info = {.dapl_version_major = DAT_VERSION_MAJOR,
				  .dapl_version_minor = DAT_VERSION_MINOR,
				  .is_thread_safe = DAT_THREADSAFE};

	snprintf(info.ia_name, sizeof(info.ia_name), "%s", name);
	return info;
}

static DAT_RETURN open_name(const char *name, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &async, ia);
}

/* PROV-INIT-01 PROV-FINI-01 PROV-INIT-08 PROV-INIT-09 PROV-INIT-12 D2-REG-29: It registers the
 * given name and no other. */
static void provider_init__by_the_program__registers_that_name(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;

	library->init(&info, "lo");
	dt_fails_with(open_name("own1", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	dt_fails_with(open_name("lo", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	dt_ok(open_name("own0", &ia));
	dt_ok(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	assert_string_equal(attr.adapter_name, "own0");
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	library->fini(&info);
}

/* PROV-FINI-06 PROV-FINI-08 REG-REMOVE-09: It removes the registration of the name during the
 * call. */
static void provider_fini__one_of_two_names__only_that_one_is_gone(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO first = info_of("own0"), second = info_of("own1");
	DAT_IA_HANDLE ia;

	library->init(&first, "lo");
	library->init(&second, "lo");
	library->fini(&first);
	dt_fails_with(open_name("own0", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	dt_ok(open_name("own1", &ia));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	library->fini(&second);
	dt_fails_with(open_name("own1", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	library->init(&first, "lo"); /* it can be registered again */
	dt_ok(open_name("own0", &ia));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	library->fini(&first);
}

/* PROV-INIT-10: The name is registered already; the failed call leaves nothing behind. */
static void provider_init__name_taken__leaves_nothing(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	const DAT_PROVIDER *provider;
	struct dt_ia adapter;
	DAT_IA_HANDLE ia;

	dt_ia_open(&adapter);
	provider = *(const DAT_PROVIDER *const *)adapter.pz;
	dt_ok(dat_registry_add_provider(provider, &info));
	library->init(&info, "lo");
	dt_ok(dat_registry_remove_provider(provider, &info));
	dt_fails_with(open_name("own0", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	dt_ok(dat_registry_add_provider(provider, &info));
	dt_ok(dat_registry_remove_provider(provider, &info));
	dt_ia_close(&adapter);
}

/* The name opens, so its instance data are "lo": other data cannot be opened. */
static void name_opens(const char *name, DAT_UINT32 minor)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	dt_ok(dat_ia_openv((DAT_NAME_PTR)(uintptr_t)name, 8, &async, &ia, DAT_VERSION_MAJOR, minor,
			   DAT_THREADSAFE));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* PROV-INIT-12 REG-ADD-03 GEN-20: The second call for a name is refused; the first stays. */
static void provider_init__twice__first_stays(void **state)
{
	static const char *const again[] = {"lo", "no-such-device"};
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	DAT_IA_HANDLE ia;

	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
		library->init(&info, "lo");
		library->init(&info, again[i]);
		name_opens("own0", DAT_VERSION_MINOR);
		library->fini(&info);
		dt_fails_with(open_name("own0", &ia), DAT_PROVIDER_NOT_FOUND,
			      DAT_NAME_NOT_REGISTERED);
	}
}

/* REG-REMOVE-03 GEN-20: The removal is refused while an instance is open; the name still opens. */
static void provider_fini__instance_open__name_still_opens(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	DAT_IA_HANDLE ia;

	library->init(&info, "lo");
	dt_ok(open_name("own0", &ia));
	library->fini(&info);
	name_opens("own0", DAT_VERSION_MINOR);
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	library->fini(&info);
	dt_fails_with(open_name("own0", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-33 PROV-FINI-08: Two versions of a name are registered and removed one by one. */
static void provider_fini__one_of_two_versions__other_still_opens(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO new = info_of("own0"), old = info_of("own0");
	DAT_IA_HANDLE ia;

	new.dapl_version_minor++;
	library->init(&new, "lo");
	library->init(&old, "lo");
	name_opens("own0", old.dapl_version_minor);
	library->fini(&old);
	name_opens("own0", new.dapl_version_minor);
	library->fini(&new);
	dt_fails_with(open_name("own0", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-27 GEN-20: Another version with other instance data does not change those of the first. */
static void provider_init__other_version_with_other_data__first_stays(void **state)
{
	struct library *library = *state;
	DAT_PROVIDER_INFO new = info_of("own0"), old = info_of("own0");

	new.dapl_version_minor++;
	library->init(&new, "lo");
	library->init(&old, "no-such-device");
	name_opens("own0", new.dapl_version_minor);
	name_opens("own0", old.dapl_version_minor); /* a newer minor version serves it */
	library->fini(&old);
	name_opens("own0", new.dapl_version_minor);
	library->fini(&new);
}

/* Invalid instance data: the name is registered, and opening it fails without side effects. */
static void provider_init__bad_instance_data__open_fails(void **state)
{
	static const char *const bad[] = {"",	   "no-such-device",	    "lo copy=fast",
					  "lo lo", "lo peer_timeout_ms=-1", "lo =3"};
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	DAT_IA_HANDLE ia;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		library->init(&info, bad[i]);
		dt_fails_with(open_name("own0", &ia), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_DEVICE);
		library->fini(&info);
	}
}

/* The forms of instance data that name the same device. */
static void provider_init__forms_of_instance_data__open(void **state)
{
	static const char *const good[] = {"lo", "lo 0", "127.0.0.1", "lo copy=cma",
					   "127.0.0.1 peer_timeout_ms=100 spin_us=0"};
	struct library *library = *state;
	DAT_PROVIDER_INFO info = info_of("own0");
	DAT_IA_HANDLE ia;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		library->init(&info, good[i]);
		dt_ok(open_name("own0", &ia));
		dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
		library->fini(&info);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(provider_init__by_the_program__registers_that_name),
		T(provider_fini__one_of_two_names__only_that_one_is_gone),
		T(provider_init__name_taken__leaves_nothing),
		T(provider_init__twice__first_stays),
		T(provider_fini__instance_open__name_still_opens),
		T(provider_fini__one_of_two_versions__other_still_opens),
		T(provider_init__other_version_with_other_data__first_stays),
		T(provider_init__bad_instance_data__open_fails),
		T(provider_init__forms_of_instance_data__open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
