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

directory = Dir.mktmpdir
at_exit { FileUtils.rm_rf(directory) }
trap('TERM') { exit }
ENV['DATABASE_URL'] = "sqlite3:#{directory}/db"

Site = Class.new(Rails::Application) do
  config.root = directory
  config.eager_load = false
  config.secret_key_base = 'x' * 30
  config.hosts.clear
  config.logger = Logger.new(IO::NULL)
  config.active_job.queue_adapter = :inline
  config.active_storage.service = :local
  config.active_storage.service_configurations = { local: { service: 'Disk', root: directory } }
  config.action_mailbox.ingress = :relay
  config.action_mailbox.incinerate = false
end

Site.initialize!
ActiveRecord::Migration.verbose = false
# As the migrations of Active Storage and Action Mailbox make them.
ActiveRecord::Schema.define do
  create_table :active_storage_blobs do |t|
    %i[key filename content_type service_name checksum].each { |name| t.string name }
    t.text :metadata
    t.bigint :byte_size
    t.datetime :created_at
  end
  create_table :active_storage_attachments do |t|
    t.string :name
    t.references :record, polymorphic: true
    t.references :blob
    t.datetime :created_at
  end
  create_table :action_mailbox_inbound_emails do |t|
    t.integer :status, default: 0, null: false
    t.string :message_id, :message_checksum
    t.timestamps
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
      service: 'Rails', from: mail[:from].decoded, to: mail.to, subject: mail.subject, text: text.decoded,
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
