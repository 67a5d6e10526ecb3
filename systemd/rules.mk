# `make install`: programs, manual pages, units, configuration, completions.  DESTDIR is put in front of every path and
# written into none; a configuration file that is there already is kept.

SYSCONFDIR ?= /etc
bindir      = $(PREFIX)/bin
mandir      = $(PREFIX)/share/man
docdir      = $(PREFIX)/share/doc/rnbd
unitdir     = $(PREFIX)/lib/systemd
confdir     = $(SYSCONFDIR)/rnbd
bashdir     = $(PREFIX)/share/bash-completion/completions
zshdir      = $(PREFIX)/share/zsh/site-functions
fishdir     = $(PREFIX)/share/fish/vendor_completions.d
INSTALL    ?= install
put         = $(INSTALL) -D -m $(1) $(2) $(DESTDIR)$(3)
docs        = $(wildcard README.md CHANGELOG.md LICENSE) config/models.d/example.conf
system_units := rnbd.service rnbd.socket rnbd-control.socket

# Files of `make install` but for those in $(confdir), which belong to the administrator.
installed = $(bindir)/rnbd $(bindir)/rnbctl \
            $(mandir)/man8/rnbd.8 $(mandir)/man1/rnbctl.1 $(mandir)/man5/rnbd.conf.5 \
            $(system_units:%=$(unitdir)/system/%) $(unitdir)/user/rnbd.service \
            $(PREFIX)/lib/sysusers.d/rnbd.conf $(PREFIX)/lib/tmpfiles.d/rnbd.conf \
            $(bashdir)/rnbctl $(zshdir)/_rnbctl $(fishdir)/rnbctl.fish \
            $(addprefix $(docdir)/,$(notdir $(docs)))

# A unit with its paths filled in.
$(B)/systemd/%: systemd/% systemd/rules.mk FORCE
	@mkdir -p $(@D)
	@sed -e 's,@bindir@,$(bindir),g' -e 's,@confdir@,$(confdir),g' $< > $@

.PHONY: install uninstall dist
install: all $(system_units:%=$(B)/systemd/%) $(B)/systemd/user/rnbd.service ## put all in place [DESTDIR= PREFIX=/usr SYSCONFDIR=/etc]
	$(call put,755,$(B)/rnbd,$(bindir)/rnbd)
	$(call put,755,$(B)/rnbctl,$(bindir)/rnbctl)
	$(call put,644,daemon/rnbd.8,$(mandir)/man8/rnbd.8)
	$(call put,644,client/rnbctl.1,$(mandir)/man1/rnbctl.1)
	$(call put,644,config/rnbd.conf.5,$(mandir)/man5/rnbd.conf.5)
	@for u in $(system_units); do $(call put,644,$(B)/systemd/$$u,$(unitdir)/system/$$u) || exit 1; done
	$(call put,644,$(B)/systemd/user/rnbd.service,$(unitdir)/user/rnbd.service)
	$(call put,644,systemd/rnbd.sysusers,$(PREFIX)/lib/sysusers.d/rnbd.conf)
	$(call put,644,systemd/rnbd.tmpfiles,$(PREFIX)/lib/tmpfiles.d/rnbd.conf)
	$(call put,644,client/rnbctl.bash,$(bashdir)/rnbctl)
	$(call put,644,client/rnbctl.zsh,$(zshdir)/_rnbctl)
	$(call put,644,client/rnbctl.fish,$(fishdir)/rnbctl.fish)
	@for f in $(docs); do $(call put,644,$$f,$(docdir)/$${f##*/}) || exit 1; done
	@$(INSTALL) -d -m 755 $(DESTDIR)$(confdir)/conf.d
	@if [ -e $(DESTDIR)$(confdir)/rnbd.conf ]; then echo 'kept $(DESTDIR)$(confdir)/rnbd.conf'; \
	else $(call put,644,config/rnbd.conf,$(confdir)/rnbd.conf); fi

uninstall: ## remove what install put in place, but for the configuration
	rm -f $(addprefix $(DESTDIR),$(installed))
	-rmdir $(DESTDIR)$(docdir)

dist: ## the tracked files as $(B)/rnbd-VERSION.tar.gz
	@mkdir -p $(B)
	git archive --format=tar.gz --prefix=rnbd-$(VERSION)/ -o $(B)/rnbd-$(VERSION).tar.gz HEAD
	@echo '$(B)/rnbd-$(VERSION).tar.gz'
