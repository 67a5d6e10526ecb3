# The only build file.  `make help` lists the targets.  All output goes under $(B).
#
# Lists are made from folders: a new .c file in a room is part of the build, a
# new format, kernel, architecture, backend or test is known from its file name
# or its one declaring line.  Nothing here names a single source file.

B       ?= build
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
VERSION := 0.1.0
PREFIX  ?= /usr
KIT     ?= ../shared/kit
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
PKG_CONFIG ?= pkg-config

# -- flags ---------------------------------------------------------------------
# Never -march=native, never -ffast-math: every machine must give the scalar
# twin's bits (house: kernels).  -ffp-contract=off keeps fma explicit.
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wcast-qual -Wwrite-strings -Wvla -Wundef $(if $(WERROR),-Werror)
OPT     ?= -O2 -g
PKGS    := libevent libevent_pthreads jansson libsystemd libpcre2-8 libutf8proc libxxhash liburing
ifeq ($(filter clean help format,$(MAKECMDGOALS)),)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
endif
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -linih
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE -DRNBD_VERSION='"$(VERSION)"' -I. -I$(B) -pthread -fno-strict-aliasing \
              -ffp-contract=off -fno-math-errno $(WARN) $(OPT) $(SAN) $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pthread $(SAN) $(LDFLAGS)
LIBS        = $(PKG_LIBS) -lm -ldl

# One folder = one tier = one set of flags = one bit in cpuid.h.
TIERS_x86_64  := scalar avx2 avx512
TIERS_aarch64 := scalar neon dotprod i8mm
TIERS         := $(or $(TIERS_$(ARCH)),scalar)
FLAGS_scalar  := -O2
# Under sanitizers: UBSan finds nothing in lines of intrinsics, and with -O3 it is most of the time of such a build.
FLAGS_avx2    := $(if $(SAN),-fno-sanitize=undefined,-O3) -mavx2 -mfma -mf16c
FLAGS_avx512  := $(FLAGS_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512vbmi -mgfni
FLAGS_neon    := -O3
FLAGS_dotprod := $(FLAGS_neon) -march=armv8.2-a+dotprod
FLAGS_i8mm    := $(FLAGS_neon) -march=armv8.2-a+dotprod+i8mm

# -- sources -------------------------------------------------------------------
format_src  := $(sort $(wildcard backends/formats/*.c))
kernel_src  := $(foreach t,$(TIERS),$(sort $(wildcard backends/cpu/$(t)/*.c)))
arch_src    := $(sort $(wildcard daemon/model/arch/*.c))
dialect_src := $(sort $(wildcard daemon/chat/dialect/*.c))
backend_dir := $(sort $(dir $(wildcard backends/*/*.c)))
test_src    := $(sort $(wildcard tests/unit/*/test_*.c))

common_src   := $(sort $(wildcard common/*.c))
backends_src := $(sort $(wildcard backends/*.c)) $(format_src) $(sort $(wildcard backends/cpu/*.c backends/cpu/ops/*.c)) $(kernel_src)
daemon_src   := $(filter-out daemon/main.c,$(sort $(wildcard daemon/*.c daemon/*/*.c daemon/*/*/*.c)))
client_src   := $(sort $(wildcard client/*.c))
support_src  := $(sort $(wildcard tests/support/*.c))
lib_src      := $(common_src) $(backends_src) $(daemon_src)
all_src      := $(lib_src) daemon/main.c $(client_src) $(support_src) $(wildcard tests/*/*.c tests/unit/*/*.c)

obj = $(patsubst %.c,$(B)/%.o,$(1))

.PHONY: all help FORCE
all: $(B)/rnbd $(B)/rnbctl ## build rnbd and rnbctl

help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sort -u | sed -E 's/^([a-z-]+):.*## */  \1\t/' | expand -t 20

# -- generated lists -----------------------------------------------------------
# A list is rewritten only when its text changes, so an unchanged tree rebuilds
# nothing; it depends on the set of files, so a deleted file leaves it.
gen := $(B)/gen/kernels.def $(B)/gen/archs.def $(B)/gen/formats.def $(B)/gen/dialects.def $(B)/gen/backends.def $(B)/gen/verbs.def $(B)/gen/tcases.def

define list_rule
$(B)/gen/$(1): FORCE
	@mkdir -p $$(@D); new=$$@.$$$$$$$$; { $(2) :; } > $$$$new; cmp -s $$$$new $$@ && rm $$$$new || mv $$$$new $$@
endef
$(eval $(call list_rule,kernels.def,$(if $(kernel_src),sed -n 's/^KERNEL\((.*)\);$$$$/ROW\1/p' $(kernel_src);)))
$(eval $(call list_rule,archs.def,$(foreach f,$(arch_src),echo 'ARCH($(basename $(notdir $(f))))';)))
$(eval $(call list_rule,formats.def,$(if $(format_src),sed -n 's/^const struct format format_\([a-z0-9_]*\) = .*/FORMAT(\1)/p' $(format_src);)))
$(eval $(call list_rule,dialects.def,$(foreach f,$(dialect_src),echo 'DIALECT($(basename $(notdir $(f))))';)))
$(eval $(call list_rule,backends.def,$(if $(wildcard backends/*/*.c),sed -n 's/^const struct backend_ops backend_\([a-z0-9_]*\) = .*/BACKEND(\1)/p' $(wildcard backends/*/*.c);)))
$(eval $(call list_rule,verbs.def,$(if $(wildcard client/cmd_*.c),sed -n 's/^const struct verb verb_\([a-z0-9_]*\) = .*/VERB(\1)/p' $(sort $(wildcard client/cmd_*.c));)))
$(eval $(call list_rule,tcases.def,$(foreach f,$(test_src),echo 'TCASE($(notdir $(patsubst %/,%,$(dir $(f)))), $(patsubst test_%,%,$(basename $(notdir $(f)))))';)))

$(B)/%.o: %.c Makefile | $(gen)
	@mkdir -p $(@D)
	@$(if $(Q),echo "  CC    $<",:)
	$(Q)$(CC) $(ALL_CFLAGS) -DLOG_ROOM='"$(notdir $(<D))"' $(FLAGS_$(notdir $(<D))) -MMD -MP -c -o $@ $<

-include $(patsubst %.c,$(B)/%.d,$(all_src))

# -- programs ------------------------------------------------------------------
define link
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINK  $@",:)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(1) $(LIBS)
endef

$(B)/rnbd: $(call obj,daemon/main.c $(lib_src))
	$(call link,$^)
$(B)/rnbctl: $(call obj,$(client_src) $(common_src))
	$(call link,$^)

# -- tests ---------------------------------------------------------------------
# Unit tests of a room are linked with the rooms that it may include and nothing
# else: the include law (tests/lint/rooms) is also a link law.
ROOMS     := $(sort $(foreach f,$(test_src),$(notdir $(patsubst %/,%,$(dir $(f))))))
room_path  = $(firstword $(wildcard daemon/$(1) backends/$(1) $(1)))
room_dirs  = $(shell awk -v ROOM=$(call room_path,$(1)) -f tests/lint/closure.awk tests/lint/rooms)
nested    := daemon/model daemon/chat
dir_src    = $(wildcard $(1)/*.c $(if $(filter $(nested),$(1)),$(1)/*/*.c)) \
             $(if $(filter backends/cpu,$(1)),$(wildcard backends/cpu/ops/*.c) $(kernel_src))
room_src   = $(filter-out %/main.c,$(sort $(foreach d,$(call room_dirs,$(1)),$(call dir_src,$(d)))))

define unit_rule
$(B)/gen/tcases_$(1).def: $(B)/gen/tcases.def
	@sed -n 's/^TCASE($(1), /TCASE($(1), /p' $$< > $$@
$(B)/tests/unit/main_$(1).o: tests/unit/main.c Makefile $(B)/gen/tcases_$(1).def
	@mkdir -p $$(@D)
	$(Q)$$(CC) $$(ALL_CFLAGS) -DTEST_ROOM='"$(1)"' -DTEST_LIST='"gen/tcases_$(1).def"' -c -o $$@ $$<
$(B)/tests/unit_$(1): $$(call obj,$$(call room_src,$(1)) $$(wildcard tests/unit/$(1)/*.c)) $(B)/tests/unit/main_$(1).o $(B)/libsupport.a
	$$(call link,$$^) -lcheck -lsubunit -lrt -lm
endef
$(foreach r,$(ROOMS),$(eval $(call unit_rule,$(r))))

$(B)/libsupport.a: $(call obj,$(support_src))
	@mkdir -p $(@D); rm -f $@; ar rcs $@ $^

.PHONY: check-unit
check-unit: $(foreach r,$(or $(ROOM),$(ROOMS)),$(B)/tests/unit_$(r)) ## unit tests [ROOM=memory]
	@RUN='$(RUN)' tests/run-unit.sh $^

-include $(sort $(wildcard tests/*/rules.mk systemd/rules.mk))

# -- all of it -------------------------------------------------------------------
# The two commands of README.md: they install what is missing first, so the rest
# runs in a make of its own that sees it.
.PHONY: demo check check-all deps check-asan check-tsan check-tiers
deps: ## install the Debian packages that are missing [LEVEL=build|demo|check|ci]
	@tests/support/deps.sh $(or $(LEVEL),build)

demo: ## a real model answers through daemon, rnbctl and HTTP
	@tests/support/deps.sh demo
	@$(MAKE) --no-print-directory all $(B)/tests/make_tiny
	@tests/demo.sh $(B)

.PHONY: check-sdk
check-sdk: all ## OpenAI's own SDKs (PyPI, npm) as clients
	@tests/system/sdk/sdk.sh $(B)

check: ## all tests of this machine's tiers
	@tests/support/deps.sh check
	@$(MAKE) --no-print-directory check-all

check_parts := check-unit check-kernels check-ops check-golden check-digest check-stream check-quiet check-kit check-system
check-all: all
	@tests/run-parts.sh "$(MAKE)" $(check_parts)

# Own build folders: objects of one kind are never linked with another's.
# Reports need lines and no more (-g1).  Of kernels the first vector tier stands for the wider ones, whose compiling is
# most of such a build: drivers and packing are the same, no kernel knows of threads, and what one reads and writes
# check-kernels holds on every tier with pages that fault.
asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
san_tiers := $(wordlist 1,2,$(TIERS))
check-asan: ## unit tests and goldens under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory B=$(B)-asan SAN='$(asan)' OPT='-O1 -g1' TIERS='$(san_tiers)' check-unit check-golden
# In one process: ThreadSanitizer does not follow forks that have threads.  Of common only the mailbox has any.
tsan := SAN='-fsanitize=thread' OPT='-O1 -g1' TIERS='$(san_tiers)'
check-tsan: ## unit tests of what has threads under ThreadSanitizer
	@$(MAKE) --no-print-directory B=$(B)-tsan $(tsan) RUN='env CK_FORK=no CK_RUN_CASE=mailbox' check-unit ROOM=common
	@$(MAKE) --no-print-directory B=$(B)-tsan $(tsan) RUN='env CK_FORK=no' check-unit ROOM='cpu engine'
# Not the widest: without a cap that is what check-unit has run.
check-tiers: ## unit tests of what computes with the CPU capped at each lower tier (check-ops and check-digest try all by themselves)
	@for tier in $(wordlist 2,$(words $(TIERS)),x $(TIERS)); do \
	    echo "tier $$tier"; RNBD_TEST_CPU=$$tier $(MAKE) --no-print-directory check-unit ROOM='model engine' || exit 1; \
	done

.PHONY: clean
clean: ## remove all output
	rm -rf build build-*
