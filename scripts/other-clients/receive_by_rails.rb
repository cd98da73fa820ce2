# A Rails application with Action Mailbox's relay ingress. Reads {port, settings: {password}}; prints "ready", then for each mail what
# the mailbox got.
require 'json'
given = JSON.parse($stdin.gets)
ENV['RAILS_INBOUND_EMAIL_PASSWORD'] = given['settings']['password']
require 'rails'
require 'active_record/railtie'
require 'active_storage/engine'
require 'action_controller/railtie'
require 'action_mailbox/engine'
require 'webrick'
require 'rack/handler/webrick'
require 'tmpdir'

class Site < Rails::Application
  directory = Dir.mktmpdir
  at_exit { FileUtils.rm_rf(directory) }
  config.root = directory
  config.eager_load = false
  config.secret_key_base = 'x' * 30
  config.hosts.clear
  config.logger = Logger.new(IO::NULL)
  config.active_job.queue_adapter = :inline
  config.active_storage.service = :local
  config.active_storage.service_configurations = { local: { service: 'Disk', root: directory } }
  config.action_mailbox.ingress = :relay
end

ENV['DATABASE_URL'] = 'sqlite3::memory:?pool=1'
Site.initialize!
ActiveRecord::Migration.verbose = false
[ActiveStorage::Engine, ActionMailbox::Engine].each do |engine|
  Dir[engine.root.join('db/migrate/*.rb').to_s].sort.each do |file|
    before = ActiveRecord::Migration.descendants
    load file
    (ActiveRecord::Migration.descendants - before).last.new.migrate(:up)
  end
end

class ApplicationMailbox < ActionMailbox::Base
  routing all: :telling
end

class TellingMailbox < ApplicationMailbox
  def process
    files = mail.attachments.map { |one| [one.filename, one.mime_type, one.decoded.unpack1('H*')] }
    text = mail.text_part || mail
    puts JSON.generate(
      service: 'Rails', from: mail[:from].decoded, to: mail.to, subject: mail.subject, text: text.decoded.gsub("\n", "\r\n"),
      html: mail.html_part&.decoded, files: files.sort, header: mail['X-Order']&.decoded, sender: mail.return_path,
      recipient: mail['X-Original-To']&.decoded, reply: nil
    )
    $stdout.flush
  end
end

server = WEBrick::HTTPServer.new(
  Port: given['port'], BindAddress: '127.0.0.1', Logger: WEBrick::Log.new(IO::NULL), AccessLog: []
)
server.mount '/', Rack::Handler::WEBrick, Rails.application
puts 'ready'
$stdout.flush
server.start
